package task

import (
	"context"
	"fmt"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/manifest"
)

// deployment executes the plan of a deployment.
//
// A new version is created, and not applied: other deployments may have chosen the same version for
// other manifests, and an apply would overwrite theirs. If the version exists already, or if it is
// unknown whether it was created, the cluster is asked again.
type deployment struct {
	*opContext
	description manifest.DeployDescription
	plan        manifest.Plan
}

// maxVersionAttempts bounds the attempts to create one version. Nothing waits between them, because
// an attempt fails when another deployment of the series has succeeded.
const maxVersionAttempts = 50

func (d *deployment) run(ctx context.Context, result *Result) error {
	for i := range d.plan.Steps {
		step := d.plan.Steps[i]
		if !step.Selected {
			d.reportf("Manifest %s is not selected by the labels %s", step.FullName, d.description.LabelSelectors)
			continue
		}
		applied, err := d.executeStep(ctx, i)
		if err != nil {
			return err
		}
		d.reportf("Deploy manifest task completed successfully for manifest %s in account %s", applied.FullName(), d.account())
		result.addManifest(manifest.WithoutSecrets(applied))
	}
	return nil
}

// executeStep executes one step, and returns the resulting object.
func (d *deployment) executeStep(ctx context.Context, index int) (manifest.Manifest, error) {
	deadline := time.Now().Add(d.applyTimeout(d.plan.Steps[index].Strategy))
	var turn *fair.Grant
	defer func() { turn.Release() }()
	mayBeOurs := false
	for attempt := 1; ; attempt++ {
		step := d.plan.Steps[index]
		out, err := d.apply(ctx, step, time.Until(deadline))
		if err == nil {
			return d.appliedManifest(ctx, step, out)
		}
		if !step.IsNewVersion || !mayExist(out) || attempt == maxVersionAttempts || time.Until(deadline) <= 0 {
			return nil, err
		}
		mayBeOurs = mayBeOurs || out.State == vedette.Lost
		if turn == nil {
			if turn, err = d.awaitTurn(ctx, step, deadline); err != nil {
				return nil, err
			}
		}
		if err := d.resolveVersion(ctx, index, versionState{isTaken(out), mayBeOurs}, deadline); err != nil {
			return nil, err
		}
	}
}

// awaitTurn waits until no other deployment of this server retries a version of the same series.
// Without turns all of them would choose the same version again, and all but one in vain, which costs
// clusters and agents much: the digest of a Secret takes long to derive.
func (d *deployment) awaitTurn(ctx context.Context, step manifest.Step, deadline time.Time) (*fair.Grant, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, deadline,
		vedette.Errorf(vedette.Unavailable, "other deployments created versions of %s until the deadline: try again", step.FullName))
	defer cancel()
	turn, err := d.tasks.versionTurns.Acquire(ctx, string(d.account())+"\x00"+step.Series(), 1)
	if ctx.Err() != nil {
		return turn, context.Cause(ctx)
	}
	return turn, err
}

func (t *opContext) apply(ctx context.Context, step manifest.Step, timeout time.Duration) (vedette.Outcome, error) {
	t.reportf("Submitting manifest %s to kubernetes master...", step.FullName)
	args := vedette.ApplyArgs{Manifest: step.Manifest.JSON(), Strategy: step.Strategy}
	if step.IsNewVersion {
		args.Strategy = vedette.StrategyCreateOnly
	}
	return t.change(ctx, clusterChange{object: step.FullName, failurePrefix: deployFailurePrefix(step.Strategy) + step.FullName + ". Error: ",
		args: args, timeout: timeout})
}

func (t *opContext) appliedManifest(ctx context.Context, step manifest.Step, out vedette.Outcome) (manifest.Manifest, error) {
	if len(out.Objects) == 0 {
		return step.Manifest, nil
	}
	if err := t.memory.hold(ctx, out.Objects[0]); err != nil {
		return nil, fmt.Errorf("%s was applied, but its result is left out: %w", step.FullName, err)
	}
	var applied manifest.Manifest
	err := applied.UnmarshalJSON(out.Objects[0])
	return applied, err
}

// mayExist reports whether the object of a new version exists after all, or may exist.
func mayExist(out vedette.Outcome) bool { return isTaken(out) || out.State == vedette.Lost }

// reasonAlreadyExists is the cluster's reason if an object to create exists.
const reasonAlreadyExists = "AlreadyExists"

func isTaken(out vedette.Outcome) bool {
	return out.State == vedette.Failed && out.Reason == reasonAlreadyExists
}

// versionState is what is known of a new version that could not be created.
type versionState struct {
	isTaken   bool // an object with its name exists
	mayBeOurs bool // the answer to a creation was lost
}

// resolveVersion prepares the next attempt of a step. If the answer to a creation was lost, and the
// object was made from this step, the next attempt applies it. If another deployment has created the
// version, the step gets another one. If the version does not exist, it is created again.
func (d *deployment) resolveVersion(ctx context.Context, index int, state versionState, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	step := &d.plan.Steps[index]
	if state.mayBeOurs {
		existing, err := d.Version(ctx, step.AsVersioned())
		if err != nil {
			return err
		}
		if existing.Exists && step.IsVersion(existing.Number) {
			step.IsNewVersion = false
			if step.Strategy == vedette.StrategyRecreate {
				step.Strategy = vedette.StrategyDefault // it is new already
			}
			return nil
		}
	}
	if !state.isTaken {
		return nil
	}
	d.reportf("Another deployment created %s, choosing the version again...", step.FullName)
	plan, err := d.description.Replan(ctx, d.opContext, d.plan, index)
	if err == nil {
		d.plan = plan
	}
	return err
}
