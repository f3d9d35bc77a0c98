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

// maxConcurrentAccounts is how many accounts are worked on at once.
const maxConcurrentAccounts = 8

// fanOut has the same done in several accounts at once. What it tells is told
// account by account, in the order of their names.
type FanOut struct {
	Client      *client.Client
	origin      string // of its operations: "vedette apply"
	Accounts    []string
	change      ChangeOptions // how what they change is changed, and told
	Interleaved bool          // lines are printed as they come, not account by account
	LoadErrors  []error       // what of the files can't be used
	spin        *output.Spinner

	mu          sync.Mutex
	out, errOut io.Writer
	runs        []*Run
	printing    int // the hand that is printed as it speaks
}

// New finds the accounts that a flag names. Where it is empty there must be no
// more than one.
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
		return nil, vedette.Errorf(vedette.NotFound, "the server at %s has no account: no agent has registered one", c.Server())
	case len(names) == 0:
		return nil, vedette.Errorf(vedette.NotFound, "no account is named %s; `vedette accounts` shows which there are", pattern)
	case pattern == "" && len(names) > 1:
		return nil, vedette.Errorf(vedette.Invalid, "there are %d accounts (%s): say with --account which one is meant, or several of them by a pattern such as 'prod-*'",
			len(names), abbreviate(names))
	}
	return &FanOut{Client: c, origin: cmd.CommandPath(), Accounts: names, out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(), spin: output.NewSpinner(cmd.ErrOrStderr())}, nil
}

// NewForChanges finds the accounts in which something is to be changed. A client-side
// dry run goes to none, and asks no server.
func NewForChanges(cmd *cobra.Command, pattern string, change ChangeOptions) (*FanOut, error) {
	if change.IsClientDryRun() {
		return &FanOut{Accounts: []string{""}, change: change, out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(), spin: output.NewSpinner(cmd.ErrOrStderr())}, nil
	}
	fan, err := New(cmd, pattern)
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

// FailedError is an error of which all was told already.
type FailedError struct{ Failed, Total int }

func (s FailedError) Error() string { return fmt.Sprintf("%d of %d failed", s.Failed, s.Total) }

// ForEachAccount has work done in every account. Its error is what keeps the command from
// going on anywhere, or failures.
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
	if !fan.Interleaved { // what only looks, now and then, may do so everywhere
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
	summary := FailedError{Failed: len(fan.LoadErrors), Total: len(fan.LoadErrors)}
	for _, run := range fan.runs {
		summary.Failed, summary.Total = summary.Failed+run.failed, summary.Total+run.failed+run.succeeded
	}
	if summary.Failed == 0 {
		return nil
	}
	return summary
}
