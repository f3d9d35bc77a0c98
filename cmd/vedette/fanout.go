package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

// maxConcurrentAccounts is how many accounts are worked on at once.
const maxConcurrentAccounts = 8

// fanOut has the same done in several accounts at once. What it tells is told
// account by account, in the order of their names.
type fanOut struct {
	client      *client.Client
	origin      string // of its operations: "vedette apply"
	accounts    []string
	change      changeOptions // how what they change is changed, and told
	interleaved bool          // lines are printed as they come, not account by account
	loadErrors  []error       // what of the files can't be used
	spin        *spinner

	mu          sync.Mutex
	out, errOut io.Writer
	runs        []*accountRun
	printing    int // the hand that is printed as it speaks
}

// accountRun works in one account.
type accountRun struct {
	fanOut    *fanOut
	account   string
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

// newFanOut finds the accounts that a flag names. Where it is empty there must be no
// more than one.
func newFanOut(cmd *cobra.Command, pattern string) (*fanOut, error) {
	c, err := connect(cmd)
	if err != nil {
		return nil, err
	}
	accounts, err := c.Accounts(cmd.Context(), pattern)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, a := range accounts {
		names = append(names, a.Name)
	}
	switch {
	case len(names) == 0 && pattern == "":
		return nil, vedette.Errorf(vedette.NotFound, "the server at %s has no account: no agent has registered one", c.Server())
	case len(names) == 0:
		return nil, vedette.Errorf(vedette.NotFound, "no account is named %s; `vedette accounts` shows which there are", pattern)
	case pattern == "" && len(names) > 1:
		return nil, vedette.Errorf(vedette.Invalid, "there are %d accounts (%s): say with --account which one is meant, or several of them by a pattern such as 'prod-*'",
			len(names), abbreviate(names))
	}
	return &fanOut{client: c, origin: cmd.CommandPath(), accounts: names, out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(), spin: newSpinner(cmd.ErrOrStderr())}, nil
}

// newWriteFanOut finds the accounts in which something is to be changed. A client-side
// dry run goes to none, and asks no server.
func newWriteFanOut(cmd *cobra.Command, pattern string, change changeOptions) (*fanOut, error) {
	if change.isClientDryRun() {
		return &fanOut{accounts: []string{""}, change: change, out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(), spin: newSpinner(cmd.ErrOrStderr())}, nil
	}
	fan, err := newFanOut(cmd, pattern)
	if err == nil {
		fan.change = change
	}
	return fan, err
}

// abbreviate names the first few of many.
func abbreviate(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// failureSummary is an error of which all was told already.
type failureSummary struct{ failed, total int }

func (s failureSummary) Error() string { return fmt.Sprintf("%d of %d failed", s.failed, s.total) }

// forEachAccount has work done in every account. Its error is what keeps the command from
// going on anywhere, or failures.
func (fan *fanOut) forEachAccount(ctx context.Context, work func(ctx context.Context, run *accountRun) error) error {
	defer fan.spin.stop()
	fan.runs, fan.printing = nil, 0
	for _, err := range fan.loadErrors {
		fmt.Fprintln(fan.errOut, "Error:", err)
	}
	for i, account := range fan.accounts {
		fan.runs = append(fan.runs, &accountRun{fanOut: fan, account: account, index: i})
	}
	group, ctx := errgroup.WithContext(ctx)
	if !fan.interleaved { // what only looks, now and then, may do so everywhere
		group.SetLimit(maxConcurrentAccounts)
	}
	for _, run := range fan.runs {
		group.Go(func() error {
			defer run.finish()
			return work(ctx, run)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := fan.printObjects(); err != nil {
		return err
	}
	summary := failureSummary{failed: len(fan.loadErrors), total: len(fan.loadErrors)}
	for _, run := range fan.runs {
		summary.failed, summary.total = summary.failed+run.failed, summary.total+run.failed+run.succeeded
	}
	if summary.failed == 0 {
		return nil
	}
	return summary
}

// send has an operation carried out in the hand's account, and shows meanwhile what
// it is.
func (r *accountRun) send(ctx context.Context, what string, o client.Operation) (client.Outcome, error) {
	o.Account, o.DryRun = r.account, r.fanOut.change.isDryRun() && !o.Reads()
	if r.fanOut.change.isClientDryRun() {
		return clientDryRunOutcome(o), nil
	}
	defer r.fanOut.spin.track(r.account + ": " + what)()
	out, err := r.fanOut.client.Operate(ctx, o, r.fanOut.origin)
	r.printWarnings(out.Warnings)
	return out, err
}

// execute runs an operation that the user asked for: if it succeeds, it counts as
// succeeded.
func (r *accountRun) execute(ctx context.Context, what string, o client.Operation) (client.Outcome, bool, error) {
	out, ok, err := r.query(ctx, what, o)
	if ok {
		r.countSuccess()
	}
	return out, ok, err
}

// countSuccess counts one thing that the user asked for and that is done.
func (r *accountRun) countSuccess() { r.succeeded++ }

// query runs an operation whose success is not yet what the user asked for: a read that
// another operation needs, or whose result is checked. A failure is printed and counted.
// The error is not nil if no other operation can succeed either.
func (r *accountRun) query(ctx context.Context, what string, o client.Operation) (client.Outcome, bool, error) {
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
	r.warnf("%s", r.failureMessage(what, out, err))
	r.unserved = strings.HasPrefix(out.Message, noAgentPrefix)
	return out, false, nil
}

// tryExecute is must for an operation whose failure says nothing yet: that an object is
// not there, or can't be read.
func (r *accountRun) tryExecute(ctx context.Context, what string, o client.Operation) (client.Outcome, error) {
	if r.unserved {
		r.failed++
		return client.Outcome{}, nil
	}
	out, err := r.send(ctx, what, o)
	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case err != nil && vedette.KindOf(err) == vedette.Unavailable:
		return out, err
	}
	if r.unserved = strings.HasPrefix(out.Message, noAgentPrefix); r.unserved {
		r.failed++
		r.warnf("%s", r.failureMessage(what, out, err))
	}
	return out, nil
}

// noAgentPrefix begins what the server says after it has waited for an agent in vain. To
// wait as long for every further object would help nobody.
const noAgentPrefix = "no agent serves account"

// failureMessage says in the cluster's own words why something was not done.
func (r *accountRun) failureMessage(what string, out client.Outcome, err error) string {
	switch {
	case vedette.KindOf(err) == vedette.Denied:
		return fmt.Sprintf("Error: %s: %s: %v: --user says on whose behalf you ask, and --user-accounts which restricted accounts they may change, where the server has no Fiat to ask",
			r.account, what, err)
	case err != nil:
		return fmt.Sprintf("Error: %s: %s: %v", r.account, what, err)
	case out.State == vedette.Lost:
		return fmt.Sprintf("Lost in %s: %s: %s (`vedette ops get %s` shows more)", r.account, what, out.Message, out.ID)
	}
	return fmt.Sprintf("Error from %s (%s): %s: %s", r.account, orDefault(out.Reason, fmt.Sprint(out.Status)), what, out.Message)
}

// failf is told of something that was not even tried.
func (r *accountRun) failf(format string, args ...any) {
	r.failed++
	r.warnf("Error: "+r.account+": "+format, args...)
}
