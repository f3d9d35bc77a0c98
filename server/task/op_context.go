package task

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// opContext is the context of one operation in a task. The operation uses it to report
// progress and to reach its cluster.
type opContext struct {
	*taskRun
	op validatedOp
}

func (t *opContext) reportf(format string, args ...any) {
	t.report(t.op.phase, fmt.Sprintf(format, args...))
}

func (t *opContext) account() vedette.AccountName { return t.op.account() }

type clusterChange struct {
	object        string // what changes: "deployment web", "deployment/web", or a kind and a selector
	failurePrefix string // beginning of the error message, before the cluster's message
	args          vedette.Args
	timeout       time.Duration
}

// change executes a change in the cluster. It stores the progress of the task first.
func (t *opContext) change(ctx context.Context, c clusterChange) (vedette.Outcome, error) {
	t.saveProgress(ctx)
	out := t.execute(ctx, c.args, c.timeout)
	t.recordOutput(c, out)
	return out, outcomeError(c.failurePrefix, out)
}

// query executes an operation that reads. The error is vedette.NotFound if the object does not
// exist.
func (t *opContext) query(ctx context.Context, prefix string, args vedette.Args) (vedette.Outcome, error) {
	out := t.execute(ctx, args, t.tasks.cfg.Timeout)
	if out.State == vedette.Failed && out.Status == http.StatusNotFound {
		return out, vedette.Errorf(vedette.NotFound, "%s%s", prefix, outcomeMessage(out))
	}
	return out, outcomeError(prefix, out)
}

// execute executes one operation, unless the task is ending. Its deadline is not after that of ctx.
func (t *opContext) execute(ctx context.Context, args vedette.Args, timeout time.Duration) vedette.Outcome {
	if cause := context.Cause(ctx); cause != nil {
		return vedette.Outcome{State: vedette.Failed, Status: http.StatusServiceUnavailable, Reason: "Stopped",
			Message: cause.Error() + "; this operation was not started"}
	}
	deadline := time.Now().Add(timeout)
	if limit, ok := ctx.Deadline(); ok && limit.Before(deadline) {
		deadline = limit
	}
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(outcomeGrace))
	defer cancel()
	op := vedette.Operation{ID: vedette.OperationID(ulid.Make().String()), Account: t.account(), Deadline: deadline, Args: args,
		Requester: t.options.Requester, Origin: "task " + t.id}
	out := maskOutcome(args, t.tasks.cfg.Dispatch.Execute(ctx, op))
	out.ID = op.ID
	return out
}

// outcomeGrace is the time after the deadline within which a dispatcher returns the outcome.
const outcomeGrace = 5 * time.Second

func (t *opContext) get(ctx context.Context, target vedette.Target) (manifest.Manifest, error) {
	out, err := t.query(ctx, fmt.Sprintf("Failed to get: %s of kind: %s from namespace: %s: ", target.Name, target.Kind, target.Namespace),
		vedette.GetArgs{Target: target})
	if err != nil {
		return nil, err
	}
	if len(out.Objects) != 1 {
		return nil, vedette.Errorf(vedette.Unavailable, "reading %s %s returned %d objects instead of one", target.Kind, target.Name,
			len(out.Objects))
	}
	if err := t.memory.hold(ctx, out.Objects...); err != nil {
		return nil, err
	}
	var m manifest.Manifest
	err = m.UnmarshalJSON(out.Objects[0])
	return m, err
}

// list reads all objects of a kind in a namespace that match a selector.
func (t *opContext) list(ctx context.Context, target vedette.Target, selector string) ([]manifest.Manifest, error) {
	out, err := t.query(ctx, fmt.Sprintf("Failed to read %s from %s: ", target.Kind, target.Namespace),
		vedette.ListArgs{Target: target, LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	if err := t.memory.hold(ctx, out.Objects...); err != nil {
		return nil, err
	}
	all := make([]manifest.Manifest, 0, len(out.Objects))
	for _, raw := range out.Objects {
		var m manifest.Manifest
		if err := m.UnmarshalJSON(raw); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}
