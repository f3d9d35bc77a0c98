package task

import (
	"context"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// rolloutOp is the description of an operation on a rollout.
type rolloutOp struct {
	commonFields
	targetFields
}

func (d *rolloutOp) check(v *validation) { v.checkTarget(d.target()) }

// rolloutAction is an operation on a rollout, in Clouddriver's words.
type rolloutAction struct {
	name          string // "pause rollout"
	failurePrefix string // "Failed to pause rollout"
	args          func(vedette.Target) vedette.Args
}

func (d *rolloutOp) perform(ctx context.Context, t *opContext, action rolloutAction) error {
	target, err := d.target()
	if err != nil {
		return err
	}
	t.reportf("Starting %s operation in account %s...", action.name, t.account())
	t.reportf("Looking up resource properties...")
	if err := t.requireKind(target, action.name, "deployment", "daemonSet", "statefulSet"); err != nil {
		return err
	}
	t.reportf("Calling %s operation for %s in namespace %s...", action.name, target.name, target.namespace)
	object := kubectlName(target.args())
	_, err = t.change(ctx, clusterChange{object: object,
		failurePrefix: fmt.Sprintf("%s %s from %s: ", action.failurePrefix, object, target.namespace),
		args:          action.args(target.args()), timeout: t.tasks.cfg.Timeout})
	return err
}

// pauseOp pauses a rollout: pauseRolloutManifest.
type pauseOp struct{ rolloutOp }

func (d *pauseOp) run(ctx context.Context, t *opContext) (*Result, error) {
	err := d.perform(ctx, t, rolloutAction{"pause rollout", "Failed to pause rollout", func(target vedette.Target) vedette.Args {
		return vedette.PauseArgs{Target: target}
	}})
	if err == nil {
		t.reportf("Pause rollout operation completed successfully")
	}
	return nil, err
}

// resumeOp resumes a rollout: resumeRolloutManifest.
type resumeOp struct{ rolloutOp }

func (d *resumeOp) run(ctx context.Context, t *opContext) (*Result, error) {
	err := d.perform(ctx, t, rolloutAction{"resume rollout", "Failed to resume rollout", func(target vedette.Target) vedette.Args {
		return vedette.ResumeArgs{Target: target}
	}})
	if err == nil {
		t.reportf("Resume rollout operation completed successfully")
	}
	return nil, err
}

// restartOp restarts a rollout: rollingRestartManifest.
type restartOp struct{ rolloutOp }

func (d *restartOp) run(ctx context.Context, t *opContext) (*Result, error) {
	err := d.perform(ctx, t, rolloutAction{"rolling restart", "Failed to complete rolling restart of",
		func(target vedette.Target) vedette.Args {
			return vedette.RestartArgs{Target: target}
		}})
	if err == nil {
		t.reportf("Rolling rollout operation completed successfully")
	}
	return nil, err
}

// undoOp rolls back to an earlier revision: undoRolloutManifest.
type undoOp struct {
	rolloutOp
	Revision         optionalInt `json:"revision"`
	NumRevisionsBack optionalInt `json:"numRevisionsBack"`
}

func (d *undoOp) check(v *validation) {
	if v.checkTarget(d.target()) && d.Revision.n == nil && d.NumRevisionsBack.n == nil {
		v.reject("numRevisionsBack & revision", "empty")
	}
}

func (d *undoOp) run(ctx context.Context, t *opContext) (*Result, error) {
	target, err := d.target()
	if err != nil {
		return nil, err
	}
	t.reportf("Starting undo rollout operation in account %s...", t.account())
	t.reportf("Looking up resource properties...")
	if err := t.requireKind(target, "undo rollout", "deployment", "daemonSet", "statefulSet"); err != nil {
		return nil, err
	}
	revision, err := d.revision(ctx, t, target)
	if err != nil {
		return nil, err
	}
	t.reportf("Calling undo rollout operation for %s in namespace %s with revision %d...", target.name, target.namespace, revision)
	object := kubectlName(target.args())
	_, err = t.change(ctx, clusterChange{object: object,
		failurePrefix: fmt.Sprintf("Failed to undo rollout %s from %s: ", object, target.namespace),
		args:          vedette.UndoArgs{Target: target.args(), Revision: revision}, timeout: t.tasks.cfg.Timeout})
	if err != nil {
		return nil, err
	}
	t.reportf("Undo rollout operation completed successfully")
	return nil, nil
}

// revision returns the revision to roll back to. If the description has a number of revisions,
// it is resolved with the history, because an undo to a fixed revision can be sent twice
// without harm.
func (d *undoOp) revision(ctx context.Context, t *opContext, target objectRef) (int64, error) {
	if d.NumRevisionsBack.n == nil {
		return *d.Revision.n, nil
	}
	stepsBack := *d.NumRevisionsBack.n
	t.reportf("Looking up rollout history...")
	out, err := t.query(ctx, fmt.Sprintf("Failed to get rollout history of %s from %s: ", kubectlName(target.args()), target.namespace),
		vedette.HistoryArgs{Target: target.args()})
	if err != nil {
		return 0, err
	}
	var revisions []vedette.Revision // sorted, the oldest first
	if err := exactjson.Unmarshal(out.Result, &revisions, bodyLimits); err != nil {
		return 0, vedette.Errorf(vedette.Unavailable, "the agent sent an invalid answer about the history of %s", target)
	}
	index := int64(len(revisions)) - stepsBack - 1
	if index < 0 || stepsBack < 0 {
		return 0, illegalArgument(fmt.Sprintf("There are %d revision(s) in total, cannot rollback %d", len(revisions), stepsBack))
	}
	t.reportf("Picked revision %d...", revisions[index].Number)
	return revisions[index].Number, nil
}
