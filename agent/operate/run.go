package operate

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// run executes one operation.
type run struct {
	*request.Sender
	operator *Operator
	// fieldManager is the field manager of a patch, a create or a replace; empty for kubectl's.
	fieldManager string
	// secretPreview is the metadata of the Secret that a dry run would make; nil for none.
	secretPreview []byte
	streamCtx     context.Context // of what is read while the outcome is sent; it has no deadline
}

func newRun(o *Operator, op vedette.Operation, c request.Control) *run {
	return &run{Sender: o.client.NewSender(op, c), operator: o}
}

// outcome executes the operation.
func (r *run) outcome(ctx context.Context) vedette.Outcome {
	out := r.toOutcome(r.execute(ctx))
	out.Warnings = r.Warnings.List()
	out.Changes = r.ListChanges(ctx, out.State)
	return out
}

func (r *run) execute(ctx context.Context) result {
	r.streamCtx = ctx
	if err := r.checkPreset(); err != nil {
		return errorResult(err)
	}
	if a, ok := r.Operation.Args.(vedette.LogsArgs); ok {
		return r.logs(ctx, r.deadline(), a)
	}
	ctx, cancel := context.WithDeadline(ctx, r.deadline())
	defer cancel()
	if err := r.UseMemory(ctx, decodedManifests*request.DecodedSize(manifestOf(r.Operation.Args), request.DecodedAsTree)); err != nil {
		return errorResult(err)
	}
	res := r.executeVerb(ctx)
	res.err = r.FinalError(res.err)
	return res
}

func (r *run) deadline() time.Time {
	if r.Operation.Deadline.IsZero() {
		return time.Now().Add(r.operator.cfg.Timeout)
	}
	return r.Operation.Deadline
}

// result is what a verb returns: an outcome that is not complete yet, or an error.
type result struct {
	vedette.Outcome
	err error
}

func errorResult(err error) result { return result{err: err} }

func (r *run) executeVerb(ctx context.Context) result {
	switch a := r.Operation.Args.(type) {
	case vedette.GetArgs:
		return r.get(ctx, a)
	case vedette.ListArgs:
		return r.list(ctx, a)
	case vedette.ApplyArgs:
		return r.apply(ctx, a)
	case vedette.PatchArgs:
		return r.patch(ctx, a)
	case vedette.DeleteArgs:
		a.NoWait = a.NoWait || r.IsDryRun()
		return r.delete(ctx, a)
	case vedette.PruneArgs:
		return r.prune(ctx, a)
	case vedette.ScaleArgs:
		return r.scale(ctx, a)
	case vedette.RestartArgs:
		return r.restart(ctx, a.Target)
	case vedette.PauseArgs:
		return r.pause(ctx, a.Target)
	case vedette.ResumeArgs:
		return r.resume(ctx, a.Target)
	case vedette.UndoArgs:
		return r.undo(ctx, a)
	case vedette.HistoryArgs:
		return r.history(ctx, a.Target)
	case vedette.StatusArgs:
		return r.status(ctx, a.Target)
	case vedette.EventsArgs:
		return r.events(ctx, a.Target)
	case vedette.MetricsArgs:
		return r.metrics(ctx, a)
	case vedette.DiscoverArgs:
		return r.discover(ctx)
	case vedette.RecacheArgs:
		return r.recache(ctx, a.Target)
	case vedette.VersionArgs:
		return r.version(ctx, a)
	case vedette.AccessArgs:
		return r.access(ctx, a)
	}
	return errorResult(&request.StatusError{Status: http.StatusBadRequest, Reason: vedette.ReasonUnknownToAgent,
		Message: "this agent knows no operation " + quotedVerb(r.Operation.Args)})
}

func quotedVerb(args vedette.Args) string {
	if args == nil {
		return "without arguments"
	}
	return fmt.Sprintf("%q", args.Verb())
}

// toOutcome makes a result the outcome of the operation.
func (r *run) toOutcome(res result) vedette.Outcome {
	out := res.Outcome
	if res.err != nil {
		out = errorOutcome(res.err)
		out.Keys = res.Keys // of what was done before the failure
		out.UIDs = res.UIDs
		out.Absent = res.Absent
		out.Objects = res.Objects
	} else {
		out.State = vedette.Done
		if out.Status == 0 {
			out.Status = http.StatusOK
		}
	}
	out.ID = r.Operation.ID
	out.Message = strings.ToValidUTF8(out.Message, "\uFFFD") // gRPC rejects other text
	if r.Operation.DryRun {
		return cleanDryRunOutcome(out)
	}
	return out
}

// decodedManifests is how many decoded copies of a manifest an operation has at most: of itself, of the
// object, of what was applied last, and of the result.
const decodedManifests = 4

// manifestOf returns the document of an operation; nil for none.
func manifestOf(args vedette.Args) []byte {
	switch a := args.(type) {
	case vedette.ApplyArgs:
		return a.Manifest
	case vedette.PatchArgs:
		return a.Patch
	case vedette.VersionArgs:
		return a.Manifest
	}
	return nil
}
