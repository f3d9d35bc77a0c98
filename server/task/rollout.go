package task

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/vedette-io/vedette"
)

// rollout is the description of what is done to a rollout.
type rollout struct {
	common
	targeted
}

func (d *rollout) check(v *validation) { v.target(d.target()) }

// deed is what is done to a rollout, in Clouddriver's words.
type deed struct {
	name   string // "pause rollout"
	failed string // "Failed to pause rollout"
	args   func(vedette.Target) vedette.Args
}

func (d *rollout) do(ctx context.Context, t *turn, what deed) error {
	target, err := d.target()
	if err != nil {
		return err
	}
	t.say("Starting %s operation in account %s...", what.name, t.account())
	t.say("Looking up resource properties...")
	if err := t.scales(target, what.name, "deployment", "daemonSet", "statefulSet"); err != nil {
		return err
	}
	t.say("Calling %s operation for %s in namespace %s...", what.name, target.name, target.namespace)
	object := resource(target.args())
	_, err = t.change(ctx, act{object: object, failed: fmt.Sprintf("%s %s from %s: ", what.failed, object, target.namespace),
		args: what.args(target.args()), within: t.tasks.cfg.Timeout})
	return err
}

// pause stops a rollout: pauseRolloutManifest.
type pause struct{ rollout }

func (d *pause) run(ctx context.Context, t *turn) (*Result, error) {
	err := d.do(ctx, t, deed{"pause rollout", "Failed to pause rollout", func(o vedette.Target) vedette.Args { return vedette.PauseArgs{Target: o} }})
	if err == nil {
		t.say("Pause rollout operation completed successfully")
	}
	return nil, err
}

// resume lets a rollout go on: resumeRolloutManifest.
type resume struct{ rollout }

func (d *resume) run(ctx context.Context, t *turn) (*Result, error) {
	err := d.do(ctx, t, deed{"resume rollout", "Failed to resume rollout", func(o vedette.Target) vedette.Args { return vedette.ResumeArgs{Target: o} }})
	if err == nil {
		t.say("Resume rollout operation completed successfully")
	}
	return nil, err
}

// restart rolls the same pods out once more: rollingRestartManifest.
type restart struct{ rollout }

func (d *restart) run(ctx context.Context, t *turn) (*Result, error) {
	err := d.do(ctx, t, deed{"rolling restart", "Failed to complete rolling restart of", func(o vedette.Target) vedette.Args { return vedette.RestartArgs{Target: o} }})
	if err == nil {
		t.say("Rolling rollout operation completed successfully")
	}
	return nil, err
}

// undo goes back to an earlier revision: undoRolloutManifest.
type undo struct {
	rollout
	Revision         number `json:"revision"`
	NumRevisionsBack number `json:"numRevisionsBack"`
}

func (d *undo) check(v *validation) {
	if v.target(d.target()) && d.Revision.n == nil && d.NumRevisionsBack.n == nil {
		v.reject("numRevisionsBack & revision", "empty")
	}
}

func (d *undo) run(ctx context.Context, t *turn) (*Result, error) {
	target, err := d.target()
	if err != nil {
		return nil, err
	}
	t.say("Starting undo rollout operation in account %s...", t.account())
	t.say("Looking up resource properties...")
	if err := t.scales(target, "undo rollout", "deployment", "daemonSet", "statefulSet"); err != nil {
		return nil, err
	}
	revision, err := d.revision(ctx, t, target)
	if err != nil {
		return nil, err
	}
	t.say("Calling undo rollout operation for %s in namespace %s with revision %d...", target.name, target.namespace, revision)
	object := resource(target.args())
	_, err = t.change(ctx, act{object: object, failed: fmt.Sprintf("Failed to undo rollout %s from %s: ", object, target.namespace),
		args: vedette.UndoArgs{Target: target.args(), Revision: revision}, within: t.tasks.cfg.Timeout})
	if err != nil {
		return nil, err
	}
	t.say("Undo rollout operation completed successfully")
	return nil, nil
}

// revision chooses the revision by the history, where a number of steps is
// given: an undo of a known revision does no harm when it is sent twice, as one
// of a number of steps would.
func (d *undo) revision(ctx context.Context, t *turn, target target) (int64, error) {
	if d.NumRevisionsBack.n == nil {
		return *d.Revision.n, nil
	}
	back := *d.NumRevisionsBack.n
	t.say("Looking up rollout history...")
	out, err := t.ask(ctx, fmt.Sprintf("Failed to get rollout history of %s from %s: ", resource(target.args()), target.namespace), vedette.HistoryArgs{Target: target.args()})
	if err != nil {
		return 0, err
	}
	var revisions []vedette.Revision // the oldest first
	if err := json.Unmarshal(out.Result, &revisions); err != nil {
		return 0, vedette.Errorf(vedette.Unavailable, "the agent's answer for the history of %s makes no sense", target)
	}
	at := int64(len(revisions)) - back - 1
	if at < 0 || back < 0 {
		return 0, illegalArgument(fmt.Sprintf("There are %d revision(s) in total, cannot rollback %d", len(revisions), back))
	}
	t.say("Picked revision %d...", revisions[at].Number)
	return revisions[at].Number, nil
}
