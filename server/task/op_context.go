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

// change executes a change in the cluster. The progress of the task is stored first.
func (t *opContext) change(ctx context.Context, c clusterChange) (vedette.Outcome, error) {
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

// execute executes one operation, unless the task is ending. Its deadline is not after that of ctx. If the operation was executed when the
// task ran at another server, its answer is returned.
func (t *opContext) execute(ctx context.Context, args vedette.Args, timeout time.Duration) vedette.Outcome {
	j := &t.journal
	var asked string
	if t.copier != nil {
		asked = askedArgs(args)
	}
	op := vedette.Operation{Account: t.account(), Args: args, Requester: t.options.Requester, Origin: "task " + t.id}
	index := -1
	if t.isContinued {
		index = j.replay(asked)
	}
	if index >= 0 && j.steps[index].Outcome != nil {
		return j.steps[index].Outcome.outcome(j.steps[index].ID)
	}
	isBegun := index >= 0
	switch {
	case isBegun:
		op.Args = withKnownUID(args, j.steps[index].KnownUID)
	case op.Changes() && j.hasDiverged():
		return divergedOutcome()
	default:
		index = j.begin(asked, op.Changes())
	}
	if op.Changes() && !isBegun {
		t.beginChange(ctx, index, args)
	}
	if cause := context.Cause(ctx); cause != nil {
		return vedette.Outcome{State: vedette.Failed, Status: http.StatusServiceUnavailable, Reason: "Stopped",
			Message: cause.Error() + "; this operation was not started"}
	}
	if op.ID = j.steps[index].ID; op.ID == "" {
		op.ID = vedette.OperationID(ulid.Make().String())
	}
	do := t.tasks.cfg.Dispatch.Execute
	if isBegun {
		do = t.resume
	}
	out := t.send(ctx, op, timeout, do)
	t.answered(index, func(s *step) { s.Outcome = recordOutcome(out) })
	return out
}

// beginChange records a change before it is sent: at the server that has the copy of the task, and in the row of the task.
func (t *opContext) beginChange(ctx context.Context, index int, args vedette.Args) {
	s := &t.journal.steps[index]
	if deletion, ok := args.(vedette.DeleteArgs); ok && t.copier != nil && deletion.Name != "" {
		s.KnownUID = t.tasks.cfg.Sharing.KnownUID(ctx, t.account(), deletion)
	}
	t.copier.beginChange(*s) //nolint:contextcheck // the copy belongs to the task
	t.saveProgress(ctx)
}

// withKnownUID returns the arguments of a deletion that is resumed, with the uid of what it deletes: a new object of the same name stays.
func withKnownUID(args vedette.Args, uid string) vedette.Args {
	if deletion, ok := args.(vedette.DeleteArgs); ok && uid != "" {
		deletion.KnownUID = uid
		return deletion
	}
	return args
}

// answered records the answer to a step. What comes when the run is ending is not recorded: it can say that nobody waited.
func (t *opContext) answered(index int, set func(*step)) {
	if t.copier == nil || t.ctx.Err() != nil {
		return
	}
	s := &t.journal.steps[index]
	set(s)
	t.copier.answer(*s)
}

// resume executes a change that another server may have sent.
func (t *opContext) resume(ctx context.Context, op vedette.Operation) vedette.Outcome {
	out := t.tasks.cfg.Sharing.Resume(ctx, op)
	if _, isApply := op.Args.(vedette.ApplyArgs); !isApply || out.State != vedette.Done || len(out.Objects) > 0 || len(out.Keys) != 1 {
		return out
	}
	// The history has no objects. What the cluster has is what was applied, or newer.
	key := out.Keys[0]
	read := vedette.Operation{ID: vedette.OperationID(ulid.Make().String()), Account: op.Account, Deadline: op.Deadline,
		Requester: op.Requester, Origin: op.Origin,
		Args: vedette.GetArgs{Target: vedette.Target{Kind: key.Kind.String(), Namespace: key.Namespace, Name: key.Name}}}
	if live := t.tasks.cfg.Dispatch.Execute(ctx, read); live.State == vedette.Done {
		out.Objects = live.Objects
	}
	return out
}

// send sends an operation and waits for its outcome.
func (t *opContext) send(ctx context.Context, op vedette.Operation, timeout time.Duration,
	do func(context.Context, vedette.Operation) vedette.Outcome) vedette.Outcome {
	deadline := time.Now().Add(timeout)
	if limit, ok := ctx.Deadline(); ok && limit.Before(deadline) {
		deadline = limit
	}
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(outcomeGrace))
	defer cancel()
	op.Deadline = deadline
	out := maskOutcome(op.Args, do(ctx, op))
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
