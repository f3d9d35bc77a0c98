// Package fanout runs one command in several accounts at once. Each account has a Run, whose
// output is printed as if the accounts were served one after the other, in the order of
// their names; and one summary counts what failed.
package fanout

import (
	"context"
	"errors"
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
	notices     output.Notices
	warnedBy    map[string]string // the account whose warning was printed, by its text
	alsoWarned  []string          // accounts with the same warnings
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
	case len(names) == 0:
		return nil, vedette.Errorf(vedette.NotFound, "the server at %s has no accounts: no agent has registered one, see `vedette agents`", c.Server())
	case pattern == "" && len(names) > 1:
		return nil, vedette.Errorf(vedette.Invalid, "there are %d accounts (%s): select one, or a pattern like 'prod-*', with --account",
			len(names), abbreviate(names))
	}
	return NewForAccounts(cmd, c, names), nil
}

// NewForAccounts returns a fan-out over accounts that are known already.
func NewForAccounts(cmd *cobra.Command, c *client.Client, accounts []string) *FanOut {
	return &FanOut{Client: c, origin: cmd.CommandPath(), Accounts: accounts, out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(),
		spin: output.NewSpinner(cmd.ErrOrStderr())}
}

// NewForChanges is New for commands that change objects. A client-side dry run does not
// contact the server.
func NewForChanges(cmd *cobra.Command, pattern string, change ChangeOptions) (*FanOut, error) {
	if change.IsClientDryRun() {
		fan := NewForAccounts(cmd, nil, []string{""})
		fan.change = change
		return fan, nil
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

// FailedAccounts returns the accounts in which something failed.
func (fan *FanOut) FailedAccounts() (accounts []string) {
	for _, run := range fan.runs {
		if run.failed > 0 {
			accounts = append(accounts, run.Account)
		}
	}
	return accounts
}

// FailedError is the error of a command whose failures were printed already.
type FailedError struct{ Failed, Total int }

func (s FailedError) Error() string { return fmt.Sprintf("%d of %d failed", s.Failed, s.Total) }

// IsPartial reports whether some accounts failed, which were named, and others may not have.
func IsPartial(err error) bool {
	_, ok := errors.AsType[FailedError](err)
	return ok
}

// Collect calls work for every account, and returns what it has returned there.
func Collect[T any](ctx context.Context, fan *FanOut, work func(context.Context, *Run) (T, error)) (map[string]T, error) {
	var mu sync.Mutex
	found := make(map[string]T, len(fan.Accounts))
	err := fan.ForEachAccount(ctx, func(ctx context.Context, run *Run) error {
		result, err := work(ctx, run)
		mu.Lock()
		defer mu.Unlock()
		found[run.Account] = result
		return err
	})
	return found, err
}

// ForEachAccount calls work for every account, and prints objects that the runs reported. It
// returns the first error of work, or a FailedError if runs counted failures. If ctx or an error ends
// it early, it prints how far each account came.
func (fan *FanOut) ForEachAccount(ctx context.Context, work func(ctx context.Context, run *Run) error) error {
	defer fan.spin.Stop()
	fan.runs, fan.printing = nil, 0
	fan.notices = output.Notices{Out: fan.errOut}
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
	err := group.Wait()
	fan.printLeftOut()
	if err != nil {
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
