package operate

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// run executes one operation. Only its methods send requests; an Operator has none that do.
// So the compiler requires every request to be sent with the options of its operation.
//
// The options are not values of the context, because code that starts from a new context
// would lose them without an error, and a dry run would change the cluster.
type run struct {
	operator  *Operator
	operation vedette.Operation
	// dryRun adds dryRun=All to every request that is not read-only.
	dryRun bool
	// fieldValidation is the parameter of that name of requests that carry a manifest; empty
	// for none.
	fieldValidation string
	warnings        *warningCollector
	lost            *lostTracker
	changes         *changeTracker
	control         Control
	streamCtx       context.Context // of what is read while the outcome is sent; it has no deadline
}

func newRun(o *Operator, op vedette.Operation) *run {
	return &run{operator: o, operation: op, dryRun: op.DryRun, warnings: &warningCollector{}, lost: &lostTracker{}, changes: &changeTracker{}}
}

// asDryRun returns a run of the same operation whose requests change nothing. It shares the
// warnings and the lost answers.
func (r *run) asDryRun() *run {
	dry := *r
	dry.dryRun = true
	return &dry
}

// outcome executes the operation.
func (r *run) outcome(ctx context.Context) vedette.Outcome {
	out := r.toOutcome(r.execute(ctx))
	out.Warnings = r.warnings.list()
	return out
}

func (r *run) execute(ctx context.Context) result {
	r.streamCtx = ctx
	if a, ok := r.operation.Args.(vedette.LogsArgs); ok {
		return r.logs(ctx, r.deadline(), a)
	}
	ctx, cancel := context.WithDeadline(ctx, r.deadline())
	defer cancel()
	if err := r.useMemory(ctx, decodedManifests*decodedSize(manifestOf(r.operation.Args), decodedAsTree)); err != nil {
		return errorResult(err)
	}
	res := r.executeVerb(ctx)
	res.err = r.lost.finalError(res.err)
	return res
}

func (r *run) deadline() time.Time {
	if r.operation.Deadline.IsZero() {
		return time.Now().Add(r.operator.cfg.Timeout)
	}
	return r.operation.Deadline
}

// result is what a verb returns: an outcome that is not complete yet, or an error.
type result struct {
	vedette.Outcome
	err error
}

func errorResult(err error) result { return result{err: err} }

func (r *run) executeVerb(ctx context.Context) result {
	switch a := r.operation.Args.(type) {
	case vedette.GetArgs:
		return r.get(ctx, a)
	case vedette.ListArgs:
		return r.list(ctx, a)
	case vedette.ApplyArgs:
		return r.apply(ctx, a)
	case vedette.PatchArgs:
		return r.patch(ctx, a)
	case vedette.DeleteArgs:
		a.NoWait = a.NoWait || r.dryRun
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
	}
	return errorResult(&statusError{Status: http.StatusBadRequest, Reason: vedette.ReasonUnknownToAgent,
		Message: "this agent knows no operation " + quotedVerb(r.operation.Args)})
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
		out.Keys, out.UIDs, out.Objects = res.Keys, res.UIDs, res.Objects // of what was done before the failure
	} else {
		out.State = vedette.Done
		if out.Status == 0 {
			out.Status = http.StatusOK
		}
	}
	out.ID = r.operation.ID
	out.Message = strings.ToValidUTF8(out.Message, "\uFFFD") // gRPC rejects other text
	if r.operation.DryRun {
		return cleanDryRunOutcome(out)
	}
	return out
}
