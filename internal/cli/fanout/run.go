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

// Run works in one account.
type Run struct {
	fanOut    *FanOut
	Account   string
	index     int
	ended     bool
	pending   []outputLine // while it is not its turn
	succeeded int          // things that were done
	failed    int          // things that were not
	unserved  bool         // no agent serves the account, and nothing more is tried

	printedWarnings map[string]bool   // warnings that were told
	objects         []json.RawMessage // to be printed in the end
}

type outputLine struct {
	text     string
	toStderr bool
}

// send has an operation carried out in the hand's account, and shows meanwhile what
// it is.
func (r *Run) send(ctx context.Context, what string, o client.Operation) (client.Outcome, error) {
	o.Account, o.DryRun = r.Account, r.fanOut.change.IsDryRun() && !o.Reads()
	if r.fanOut.change.IsClientDryRun() {
		return clientDryRunOutcome(o), nil
	}
	defer r.fanOut.spin.Track(r.Account + ": " + what)()
	out, err := r.fanOut.Client.Operate(ctx, o, r.fanOut.origin)
	r.printWarnings(out.Warnings)
	return out, err
}

// Execute runs an operation that the user asked for: if it succeeds, it counts as
// succeeded.
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
// another operation needs, or whose result is checked. A failure is printed and counted.
// The error is not nil if no other operation can succeed either.
func (r *Run) Query(ctx context.Context, what string, o client.Operation) (client.Outcome, bool, error) {
	if r.unserved {
		r.failed++
		return client.Outcome{}, false, nil
	}
	out, err := r.send(ctx, what, o)
	if ctx.Err() != nil {
		return out, false, context.Cause(ctx)
	}
	if err != nil && vedette.KindOf(err) == vedette.Unavailable {
		return out, false, err
	}
	if err == nil && out.State == vedette.Done {
		return out, true, nil
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
	case ctx.Err() != nil:
		return out, false, context.Cause(ctx)
	case err != nil && vedette.KindOf(err) == vedette.Unavailable:
		return out, false, err
	}
	if r.unserved = strings.HasPrefix(out.Message, noAgentPrefix); r.unserved {
		r.failed++
		r.Warnf("%s", r.failureMessage(what, out, err))
	}
	return out, !r.unserved, nil
}

// noAgentPrefix begins what the server says after it has waited for an agent in vain. To
// wait as long for every further object would help nobody.
const noAgentPrefix = "no agent serves account"

// failureMessage says in the cluster's own words why something was not done.
func (r *Run) failureMessage(what string, out client.Outcome, err error) string {
	switch {
	case vedette.KindOf(err) == vedette.Denied:
		return fmt.Sprintf("Error: %s: %s: %v: --user says on whose behalf you ask, and --user-accounts which restricted accounts they may change, where the server has no Fiat to ask",
			r.Account, what, err)
	case err != nil:
		return fmt.Sprintf("Error: %s: %s: %v", r.Account, what, err)
	case out.State == vedette.Lost:
		return fmt.Sprintf("Lost in %s: %s: %s (`vedette ops get %s` shows more)", r.Account, what, out.Message, out.ID)
	}
	return fmt.Sprintf("Error from %s (%s): %s: %s", r.Account, cmp.Or(out.Reason, fmt.Sprint(out.Status)), what, out.Message)
}

// HasFailures reports whether anything failed in the account, or could not be read from
// the files.
func (r *Run) HasFailures() bool { return r.failed > 0 || len(r.fanOut.LoadErrors) > 0 }

// Failf is told of something that was not even tried.
func (r *Run) Failf(format string, args ...any) {
	r.failed++
	r.Warnf("Error: "+r.Account+": "+format, args...)
}
