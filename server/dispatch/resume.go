package dispatch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/dispatch/lifecycle"
	"github.com/vedette-io/vedette/server/store/history"
)

const (
	// maxResumes is how often an operation that has done nothing, or may be repeated, is executed under a further id.
	maxResumes = 5
	// resumeRetry is the time between two looks into the history, while the database does not answer.
	resumeRetry = 200 * time.Millisecond
)

// Resume executes an operation that another server may have accepted under the same id. That server has ended, or does not wait for the
// outcome any more, and the caller alone may go on in its place. It takes effect once:
//
//   - An operation that is not in the history was not sent: it is executed.
//   - One that is under way at a server that still runs is waited for.
//   - One that has ended is not executed again: the outcome is what the history has of it, without objects. If it failed because nobody
//     took it, it has done nothing, and is executed under a further id. The same happens if it is lost and idempotent.
//   - One that is pending is sent again if it is idempotent. The agent's process that has it answers instead of executing it a second time.
//     Otherwise it is lost.
func (d *Dispatcher) Resume(ctx context.Context, op vedette.Operation) vedette.Outcome {
	out := d.resume(ctx, op)
	for range maxResumes {
		if !mayRepeat(op, out) || !time.Now().Before(op.Deadline) || ctx.Err() != nil || d.changesCtx.Err() != nil {
			break
		}
		op.ID = furtherID(op.ID)
		out = d.resume(ctx, op)
	}
	return out
}

// mayRepeat reports whether an operation that has ended has done nothing, or can be done again.
func mayRepeat(op vedette.Operation, out vedette.Outcome) bool {
	hasDoneNothing := out.State == vedette.Failed && out.Status == http.StatusServiceUnavailable && out.Reason == reasonUnserved
	return hasDoneNothing || out.State == vedette.Lost && op.Idempotent()
}

// reasonUnserved is the reason of an operation that no agent was sent.
const reasonUnserved = "ServiceUnavailable"

// furtherID returns the id under which an operation is executed again. It is the same for whoever resumes it.
func furtherID(id vedette.OperationID) vedette.OperationID {
	sum := sha256.Sum256([]byte(id))
	next, _ := ulid.ParseStrict(string(id)) // zero if it is not one of ours
	copy(next[6:], sum[:])
	return vedette.OperationID(next.String())
}

func (d *Dispatcher) resume(ctx context.Context, op vedette.Operation) vedette.Outcome {
	hasWaited := false
	for {
		row, err := d.store.Operation(ctx, op.ID)
		switch {
		case vedette.KindOf(err) == vedette.NotFound:
			return d.Execute(ctx, op)
		case err != nil:
			if !pauseUntil(ctx, op.Deadline) {
				return unknownOutcome(op, "the database does not say what became of it: "+publicReason(err))
			}
			continue
		case row.Account != op.Account || row.Verb != verbOf(op):
			return withID(op, failedOutcome(http.StatusConflict, vedette.ReasonAlreadyAccepted,
				fmt.Sprintf("the id %s belongs to another operation", op.ID)))
		case row.State != history.Pending:
			return endedOutcome(row)
		case !hasWaited:
			hasWaited = true
			if d.AwaitEnd(ctx, row.Server, op.ID) == nil {
				continue // it has ended, or its end could not be recorded
			}
		}
		if ctx.Err() != nil {
			return unknownOutcome(op, "the caller left before that was known")
		}
		if !op.Idempotent() {
			return d.endAsLost(ctx, row)
		}
		if out, isMoved := d.resumeHere(ctx, op, row.Server); isMoved {
			return out
		}
		if !pauseUntil(ctx, op.Deadline) {
			return unknownOutcome(op, "this server could not go on with it in time")
		}
	}
}

// resumeHere makes an operation one of this server and delivers it, unless it has just ended or the database does not answer.
func (d *Dispatcher) resumeHere(ctx context.Context, op vedette.Operation, from vedette.ServerID) (out vedette.Outcome, isMoved bool) {
	grant, err := d.admit(ctx, op)
	if err != nil {
		return unknownOutcome(op, "this server has no memory for it"), true
	}
	end := d.accept(op.ID) // before it is ours, so that no agent forgets what it has done
	moved, err := d.store.MoveOperation(ctx, op.ID, from, d.cfg.Server, op.Deadline)
	if err != nil || !moved {
		end()
		grant.Release()
		return out, false
	}
	ctx, f := d.newInflight(ctx, op, time.Now())
	f.life = lifecycle.NewResumed(f.op, f.accepted)
	endPriority := d.prioritize(f)
	return held(ctx, op, d.runChange(ctx, f, func() { grant.Release(); end() }, endPriority)), true
}

// pauseUntil waits a moment, and reports whether there is time left.
func pauseUntil(ctx context.Context, deadline time.Time) bool {
	timer := time.NewTimer(resumeRetry)
	defer timer.Stop()
	select {
	case <-timer.C:
		return time.Now().Before(deadline)
	case <-ctx.Done():
		return false
	}
}

// endedOutcome returns what the history has of an outcome.
func endedOutcome(row history.Operation) vedette.Outcome {
	out := vedette.Outcome{ID: row.ID, State: row.State, Status: row.Status, Reason: row.Reason, Message: row.Message,
		Changes: row.Changes, Undoes: row.Undoes}
	if row.State != vedette.Done {
		return out
	}
	out.Keys = []vedette.Key{}
	for _, c := range row.Changes {
		out.Keys = append(out.Keys, c.Key)
	}
	if len(row.Changes) == 0 && row.Verb != vedette.VerbDelete && row.Name != "" { // a deletion without changes has found nothing
		out.Keys = append(out.Keys, vedette.Key{Kind: vedette.ParseKind(row.Kind), Namespace: row.Namespace, Name: row.Name})
	}
	return out
}

// endAsLost ends an operation of another server that must not be sent again.
func (d *Dispatcher) endAsLost(ctx context.Context, row history.Operation) vedette.Outcome {
	row.State, row.Status = vedette.Lost, http.StatusGatewayTimeout
	row.Reason, row.Message = "Lost", serverGoneMessage
	row.Ended = time.Now()
	if err := d.store.EndOperations(ctx, []history.Operation{row}); err != nil {
		d.log.WarnContext(ctx, "cannot record that an operation of another server is lost; it is recorded some time after its deadline", "operation", row.ID,
			"error", err)
	} else if ended, err := d.store.Operation(ctx, row.ID); err == nil && ended.State != history.Pending {
		return endedOutcome(ended) // which may be the true one
	}
	return endedOutcome(row)
}

func unknownOutcome(op vedette.Operation, reason string) vedette.Outcome {
	return vedette.Outcome{ID: op.ID, State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Lost",
		Message: "it is unknown whether this took effect: the server that accepted it has ended, and " + reason + ". Look at the object before you try again"}
}

func withID(op vedette.Operation, out vedette.Outcome) vedette.Outcome {
	out.ID = op.ID
	return out
}
