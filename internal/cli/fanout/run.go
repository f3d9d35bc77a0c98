package fanout

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

// Run is the part of a fan-out in one account. One goroutine uses it.
type Run struct {
	fanOut    *FanOut
	Account   string
	index     int
	ended     bool
	pending   []outputLine // lines, while those of earlier accounts are printed
	succeeded int          // things that the user asked for
	failed    int
	unserved  bool // no agent serves the account; nothing more is tried
	progress  progress

	printedWarnings map[string]bool   // texts of warnings
	objects         []json.RawMessage // printed at the end
}

type outputLine struct {
	text     string
	toStderr bool
}

// send runs an operation in the account. The spinner shows what it does. If ctx has ended, nothing is
// sent. If it ends meanwhile, the operation has some time left, because it was sent already.
func (r *Run) send(ctx context.Context, what string, o client.Operation) (client.Outcome, error) {
	o.Account, o.DryRun = r.Account, r.fanOut.change.IsDryRun() && !o.Reads()
	if r.fanOut.change.IsClientDryRun() {
		return clientDryRunOutcome(o), nil
	}
	if ctx.Err() != nil {
		return client.Outcome{}, context.Cause(ctx)
	}
	defer r.fanOut.spin.Track(r.Account + ": " + what)()
	if o.Reads() || o.DryRun {
		out, err := r.fanOut.Client.Operate(ctx, o, r.fanOut.origin)
		r.printWarnings(out.Warnings)
		return out, err
	}
	ctx, cancel := r.fanOut.withGrace(ctx)
	defer cancel()
	out, err := r.fanOut.Client.Operate(ctx, o, r.fanOut.origin)
	r.progress.add(what, out)
	r.printWarnings(out.Warnings)
	return out, err
}

// Execute runs an operation that the user asked for, and counts its success. It is Query
// otherwise.
func (r *Run) Execute(ctx context.Context, what string, o client.Operation) (client.Outcome, bool, error) {
	out, ok, err := r.Query(ctx, what, o)
	if ok {
		r.CountSuccess()
	}
	return out, ok, err
}

// CountSuccess counts one thing that the user asked for and that is done.
func (r *Run) CountSuccess() { r.succeeded++ }

// Query runs an operation whose success is not yet what the user asked for: a read that
// another operation needs, or whose result must be checked. It prints and counts a failure.
// The error is not nil if other operations cannot succeed either.
func (r *Run) Query(ctx context.Context, what string, o client.Operation) (client.Outcome, bool, error) {
	if r.unserved {
		r.failed++
		return client.Outcome{}, false, nil
	}
	out, err := r.send(ctx, what, o)
	switch {
	case err == nil && out.State == vedette.Done:
		return out, true, nil
	case err != nil && ctx.Err() != nil:
		return out, false, context.Cause(ctx)
	case err != nil && vedette.KindOf(err) == vedette.Unavailable:
		return out, false, err
	}
	r.failed++
	r.Warnf("%s", r.failureMessage(what, out, err))
	r.unserved = strings.HasPrefix(out.Message, noAgentPrefix)
	return out, false, nil
}

// TryQuery runs a read whose failure is not a failure of the command, for example because
// the object does not exist yet. It reports whether an agent serves the account.
func (r *Run) TryQuery(ctx context.Context, what string, o client.Operation) (client.Outcome, bool, error) {
	if r.unserved {
		r.failed++
		return client.Outcome{}, false, nil
	}
	out, err := r.send(ctx, what, o)
	switch {
	case err != nil && ctx.Err() != nil:
		return out, false, context.Cause(ctx)
	case err != nil && vedette.KindOf(err) == vedette.Unavailable:
		return out, false, err
	}
	r.unserved = strings.HasPrefix(out.Message, noAgentPrefix)
	if r.unserved {
		r.failed++
		r.Warnf("%s", r.failureMessage(what, out, err))
	}
	return out, !r.unserved, nil
}

// noAgentPrefix begins the server's message after it waited for an agent. Further operations
// are not sent, because each would wait as long again.
const noAgentPrefix = "no agent serves account"

// failureMessage returns a line about an operation that failed, with the message of the
// cluster or of the server.
func (r *Run) failureMessage(what string, out client.Outcome, err error) string {
	switch {
	case vedette.KindOf(err) == vedette.Denied:
		return fmt.Sprintf("Error: %s: %s: %v: set the user with --user and, if the server has no Fiat, the accounts that the user may change with --user-accounts",
			r.Account, what, err)
	case err != nil:
		return fmt.Sprintf("Error: %s: %s: %v", r.Account, what, err)
	case out.State == vedette.Lost:
		return fmt.Sprintf("Lost in %s: %s: %s (see `vedette ops get %s`)", r.Account, what, out.Message, out.ID)
	}
	return fmt.Sprintf("Error from %s (%s): %s: %s", r.Account, cmp.Or(out.Reason, fmt.Sprint(out.Status)), what, out.Message)
}

// HasFailures reports whether anything failed in the account or in the files.
func (r *Run) HasFailures() bool { return r.failed > 0 || len(r.fanOut.LoadErrors) > 0 }

// Failf counts and prints a failure that is not the outcome of an operation.
func (r *Run) Failf(format string, args ...any) {
	r.failed++
	r.Warnf("Error: "+r.Account+": "+format, args...)
}
