package agent

import (
	"time"

	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
)

// freshness returns up to when the accounts are complete that the server has assigned to this agent. It
// lists no others, because the server ignores what an agent says about them.
func (a *Agent) freshness(now time.Time) []uplink.AccountFreshness {
	var all []uplink.AccountFreshness
	for _, account := range a.accounts.all() {
		term := a.box.OpenTerm(account.cfg.Name)
		if term == 0 {
			continue
		}
		var found watch.Freshness
		if w := account.currentWatcher(); w != nil {
			found = w.Freshness(now)
		}
		all = append(all, uplink.AccountFreshness{Account: account.cfg.Name, Term: term, Live: found.Live, All: found.All})
	}
	return all
}

// prove makes all accounts find out up to when they are complete.
func (a *Agent) prove(within time.Duration) {
	for _, account := range a.accounts.all() {
		if w := account.currentWatcher(); w != nil {
			w.Prove(within)
		}
	}
}
