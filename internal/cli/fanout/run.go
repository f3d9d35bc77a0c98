package fanout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

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

	objects []json.RawMessage // printed at the end
}

type outputLine struct {
	text     string
	toStderr bool
	class    lineClass
	warning  string // the text of an API server
}

// lineClass says whether a line may be left out.
type lineClass int

const (
	required lineClass = iota
	notice             // one of the same sort for each account
	warning            // of an API server, which others may have, too
)

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
	out, failure, err := r.attempt(ctx, what, o)
	if failure != nil {
		r.fail(failure)
	}
	return out, failure == nil && err == nil, err
}

// Find is Query for objects that may not exist. Without a failure, found is false if the cluster has none or does not serve the kind.
func (r *Run) Find(ctx context.Context, what string, o client.Operation) (out client.Outcome, found bool, err error) {
	out, failure, err := r.attempt(ctx, what, o)
	switch {
	case err != nil:
	case failure == nil:
		return out, true, nil
	case out.State == vedette.Failed && out.Status == http.StatusNotFound:
		r.CountSuccess()
	default:
		r.fail(failure)
	}
	return out, false, err
}

// ReadIfExists is Query for one object that may not exist. If the cluster has none, ok is true and the outcome has no object. Other
// failures count (docs/decisions/0164).
func (r *Run) ReadIfExists(ctx context.Context, what string, o client.Operation) (out client.Outcome, ok bool, err error) {
	out, failure, err := r.attempt(ctx, what, o)
	if failure == nil || out.State == vedette.Failed && out.Status == http.StatusNotFound && out.Reason == "NotFound" {
		return out, err == nil, err
	}
	r.fail(failure)
	return out, false, nil
}

// errUnserved is the failure of an operation that was not sent, because no agent serves the account. This was printed before.
var errUnserved = errors.New("no agent serves the account")

// attempt runs an operation. The failure is the line to print if the operation was not done, and errUnserved if it was not sent.
// The error is not nil if other operations cannot succeed either.
func (r *Run) attempt(ctx context.Context, what string, o client.Operation) (out client.Outcome, failure, err error) {
	if r.unserved {
		return client.Outcome{}, errUnserved, nil
	}
	out, err = r.send(ctx, what, o)
	switch {
	case err == nil && out.State == vedette.Done:
		return out, nil, nil
	case err != nil && ctx.Err() != nil:
		return out, nil, context.Cause(ctx)
	case err != nil && vedette.KindOf(err) == vedette.Unavailable:
		return out, nil, err
	}
	r.unserved = strings.HasPrefix(out.Message, noAgentPrefix)
	failure = errors.New(r.failureMessage(what, out, err))
	if err != nil { // the server rejected the operation
		out.State, out.Message = cmp.Or(out.State, vedette.Failed), err.Error()
	}
	return out, failure, nil
}

// fail counts a failure, and prints it unless that was done before.
func (r *Run) fail(failure error) {
	r.failed++
	if !errors.Is(failure, errUnserved) {
		r.Warnf("%s", failure)
	}
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

// NewPoll returns the pauses between two reads of something in a cluster that is waited for.
func NewPoll() *backoff.ExponentialBackOff {
	poll := backoff.NewExponentialBackOff()
	poll.InitialInterval, poll.MaxInterval = 200*time.Millisecond, 2*time.Second
	return poll
}

// Decode decodes the result of an operation. It reports false, and counts a failure, if that is not possible. What is for messages:
// "history of pod/web".
func (r *Run) Decode(out client.Outcome, what string, result any) bool {
	err := json.Unmarshal(out.Result, result)
	if err != nil {
		r.Failf("the agent returned an invalid %s: %v", what, err)
	}
	return err == nil
}

// HasFailures reports whether anything failed in the account or in the files.
func (r *Run) HasFailures() bool { return r.failed > 0 || len(r.fanOut.LoadErrors) > 0 }

// Failf counts and prints a failure that is not the outcome of an operation.
func (r *Run) Failf(format string, args ...any) {
	r.failed++
	r.Warnf("Error: "+r.Account+": "+format, args...)
}
