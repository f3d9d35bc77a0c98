// Package fanout runs one command in several accounts at once. Each account has a Run, whose
// output is printed as if the accounts were served one after the other, in the order of
// their names; and one summary counts what failed.
package fanout

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

// maxConcurrentAccounts bounds the load on the server and its agents.
const maxConcurrentAccounts = 8

// FanOut runs a command in several accounts at once, and prints the output account by
// account, in the order of their names.
type FanOut struct {
	Client      *client.Client
	origin      string // of the operations, in their history: "vedette apply"
	Accounts    []string
	change      ChangeOptions // dry run and output format
	Interleaved bool          // print lines as they come, not account by account
	LoadErrors  []error       // of documents in files; they count as failures
	spin        *output.Spinner

	mu          sync.Mutex
	out, errOut io.Writer
	runs        []*Run
	printing    int // index of the run whose lines are printed at once
}

// New returns a fan-out over the accounts that match --account. An empty pattern is accepted
// only if there is one account, because a command must not change clusters that its user
// did not think of.
func New(cmd *cobra.Command, pattern string) (*FanOut, error) {
	c, err := connect.Client(cmd)
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
		return nil, vedette.Errorf(vedette.NotFound, "the server at %s has no accounts: no agent has registered one", c.Server())
	case len(names) == 0:
		return nil, vedette.Errorf(vedette.NotFound, "no account matches %s: `vedette accounts` lists all accounts", pattern)
	case pattern == "" && len(names) > 1:
		return nil, vedette.Errorf(vedette.Invalid, "there are %d accounts (%s): select one, or a pattern like 'prod-*', with --account",
			len(names), abbreviate(names))
	}
	return &FanOut{Client: c, origin: cmd.CommandPath(), Accounts: names, out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(),
		spin: output.NewSpinner(cmd.ErrOrStderr())}, nil
}

// NewForChanges is New for commands that change objects. A client-side dry run does not
// contact the server.
func NewForChanges(cmd *cobra.Command, pattern string, change ChangeOptions) (*FanOut, error) {
	if change.IsClientDryRun() {
		return &FanOut{Accounts: []string{""}, change: change, out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(),
			spin: output.NewSpinner(cmd.ErrOrStderr())}, nil
	}
	fan, err := New(cmd, pattern)
	if err == nil {
		fan.change = change
	}
	return fan, err
}

// abbreviate joins the first five names.
func abbreviate(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// FailedError is the error of a command whose failures were printed already.
type FailedError struct{ Failed, Total int }

func (s FailedError) Error() string { return fmt.Sprintf("%d of %d failed", s.Failed, s.Total) }

// ForEachAccount calls work for every account, and prints objects that the runs reported. It
// returns the first error of work, or a FailedError if runs counted failures. If ctx or an error ends
// it early, it prints how far each account came.
func (fan *FanOut) ForEachAccount(ctx context.Context, work func(ctx context.Context, run *Run) error) error {
	defer fan.spin.Stop()
	fan.runs, fan.printing = nil, 0
	for _, err := range fan.LoadErrors {
		fmt.Fprintln(fan.errOut, "Error:", err)
	}
	for i, account := range fan.Accounts {
		fan.runs = append(fan.runs, &Run{fanOut: fan, Account: account, index: i})
	}
	group, ctx := errgroup.WithContext(ctx)
	if !fan.Interleaved { // interleaved runs mostly wait between two short reads
		group.SetLimit(maxConcurrentAccounts)
	}
	for _, run := range fan.runs {
		group.Go(func() error {
			defer run.finish()
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err := work(ctx, run)
			run.progress.complete = err == nil
			return err
		})
	}
	if err := group.Wait(); err != nil {
		fan.printProgress()
		return err
	}
	if err := fan.printObjects(); err != nil {
		return err
	}
	summary := FailedError{Failed: len(fan.LoadErrors), Total: len(fan.LoadErrors)}
	for _, run := range fan.runs {
		summary.Failed, summary.Total = summary.Failed+run.failed, summary.Total+run.failed+run.succeeded
	}
	if summary.Failed == 0 {
		return nil
	}
	return summary
}
