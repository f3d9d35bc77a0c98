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

// mostAccounts is how many accounts are worked on at once.
const mostAccounts = 8

// crew has the same done in several accounts at once. What it tells is told
// account by account, in the order of their names.
type crew struct {
	client   *client.Client
	origin   string // of its operations: "vedette apply"
	accounts []string
	manner   manner  // how what they change is changed, and told
	live     bool    // lines are printed as they come, not account by account
	unread   []error // what of the files can't be used
	spin     *spinner

	mu          sync.Mutex
	out, errOut io.Writer
	hands       []*hand
	turn        int // the hand that is printed as it speaks
}

// hand works in one account.
type hand struct {
	crew    *crew
	account string
	at      int
	ended   bool
	said    []said // while it is not its turn
	done    int    // things that were done
	failed  int    // things that were not
	idle    bool   // no agent serves the account, and nothing more is tried

	heeded  map[string]bool   // warnings that were told
	objects []json.RawMessage // to be printed in the end
}

type said struct {
	text   string
	toErrs bool
}

// newCrew finds the accounts that a flag names. Where it is empty there must be no
// more than one.
func newCrew(cmd *cobra.Command, pattern string) (*crew, error) {
	c, err := connect(cmd)
	if err != nil {
		return nil, err
	}
	known, err := c.Accounts(cmd.Context(), pattern)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, a := range known {
		names = append(names, a.Name)
	}
	switch {
	case len(names) == 0 && pattern == "":
		return nil, vedette.Errorf(vedette.NotFound, "the server at %s has no account: no agent has registered one", c.Server())
	case len(names) == 0:
		return nil, vedette.Errorf(vedette.NotFound, "no account is named %s; `vedette accounts` shows which there are", pattern)
	case pattern == "" && len(names) > 1:
		return nil, vedette.Errorf(vedette.Invalid, "there are %d accounts (%s): say with --account which one is meant, or several of them by a pattern such as 'prod-*'",
			len(names), some(names))
	}
	return &crew{client: c, origin: cmd.CommandPath(), accounts: names, out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(), spin: newSpinner(cmd.ErrOrStderr())}, nil
}

// newChanging finds the accounts in which something is to be changed. A client-side
// dry run goes to none, and asks no server.
func newChanging(cmd *cobra.Command, pattern string, m manner) (*crew, error) {
	if m.local() {
		return &crew{accounts: []string{""}, manner: m, out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(), spin: newSpinner(cmd.ErrOrStderr())}, nil
	}
	c, err := newCrew(cmd, pattern)
	if err == nil {
		c.manner = m
	}
	return c, err
}

// some names the first few of many.
func some(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// failures is an error of which all was told already.
type failures struct{ failed, of int }

func (f failures) Error() string { return fmt.Sprintf("%d of %d failed", f.failed, f.of) }

// each has work done in every account. Its error is what keeps the command from
// going on anywhere, or failures.
func (c *crew) each(ctx context.Context, work func(ctx context.Context, h *hand) error) error {
	defer c.spin.stop()
	c.hands, c.turn = nil, 0
	for _, err := range c.unread {
		fmt.Fprintln(c.errOut, "Error:", err)
	}
	for i, account := range c.accounts {
		c.hands = append(c.hands, &hand{crew: c, account: account, at: i})
	}
	group, ctx := errgroup.WithContext(ctx)
	if !c.live { // what only looks, now and then, may do so everywhere
		group.SetLimit(mostAccounts)
	}
	for _, h := range c.hands {
		group.Go(func() error {
			defer h.end()
			return work(ctx, h)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := c.printObjects(); err != nil {
		return err
	}
	f := failures{failed: len(c.unread), of: len(c.unread)}
	for _, h := range c.hands {
		f.failed, f.of = f.failed+h.failed, f.of+h.failed+h.done
	}
	if f.failed == 0 {
		return nil
	}
	return f
}

// do has an operation carried out in the hand's account, and shows meanwhile what
// it is.
func (h *hand) do(ctx context.Context, what string, o client.Operation) (client.Outcome, error) {
	o.Account, o.DryRun = h.account, h.crew.manner.dry() && !o.Reads()
	if h.crew.manner.local() {
		return unsent(o), nil
	}
	defer h.crew.spin.busy(h.account + ": " + what)()
	out, err := h.crew.client.Operate(ctx, o, h.crew.origin)
	h.heed(out.Warnings)
	return out, err
}

// must is do for an operation that has to succeed. It tells why one did not, and
// reports whether it did. An error is one that no other operation would be spared.
func (h *hand) must(ctx context.Context, what string, o client.Operation) (client.Outcome, bool, error) {
	if h.idle {
		h.failed++
		return client.Outcome{}, false, nil
	}
	out, err := h.do(ctx, what, o)
	if ctx.Err() != nil {
		return out, false, context.Cause(ctx)
	}
	if err != nil && vedette.KindOf(err) == vedette.Unavailable {
		return out, false, err
	}
	if err == nil && out.State == vedette.Done {
		h.done++
		return out, true, nil
	}
	h.failed++
	h.warn("%s", h.trouble(what, out, err))
	h.idle = strings.HasPrefix(out.Message, noAgent)
	return out, false, nil
}

// look is must for an operation whose failure says nothing yet: that an object is
// not there, or can't be read.
func (h *hand) look(ctx context.Context, what string, o client.Operation) (client.Outcome, error) {
	if h.idle {
		h.failed++
		return client.Outcome{}, nil
	}
	out, err := h.do(ctx, what, o)
	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case err != nil && vedette.KindOf(err) == vedette.Unavailable:
		return out, err
	}
	if h.idle = strings.HasPrefix(out.Message, noAgent); h.idle {
		h.failed++
		h.warn("%s", h.trouble(what, out, err))
	}
	return out, nil
}

// noAgent begins what the server says after it has waited for an agent in vain. To
// wait as long for every further object would help nobody.
const noAgent = "no agent serves account"

// trouble says in the cluster's own words why something was not done.
func (h *hand) trouble(what string, out client.Outcome, err error) string {
	switch {
	case vedette.KindOf(err) == vedette.Denied:
		return fmt.Sprintf("Error: %s: %s: %v: --user says on whose behalf you ask, and --user-accounts which restricted accounts they may change, where the server has no Fiat to ask",
			h.account, what, err)
	case err != nil:
		return fmt.Sprintf("Error: %s: %s: %v", h.account, what, err)
	case out.State == vedette.Lost:
		return fmt.Sprintf("Lost in %s: %s: %s (`vedette ops get %s` shows more)", h.account, what, out.Message, out.ID)
	}
	return fmt.Sprintf("Error from %s (%s): %s: %s", h.account, or(out.Reason, fmt.Sprint(out.Status)), what, out.Message)
}

// fail is told of something that was not even tried.
func (h *hand) fail(format string, args ...any) {
	h.failed++
	h.warn("Error: "+h.account+": "+format, args...)
}
