package agent

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
)

// accountSet holds the accounts of an agent by name. Their runs are owned by Agent.runAccounts.
type accountSet struct {
	mu     sync.RWMutex
	byName map[vedette.AccountName]*account
}

// get returns an account, or nil.
func (s *accountSet) get(name vedette.AccountName) *account {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byName[name]
}

// all returns the accounts in any order.
func (s *accountSet) all() []*account {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.byName))
}

// put adds accounts, or replaces those with the same names.
func (s *accountSet) put(account *account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName[account.cfg.Name] = account
}

func (s *accountSet) remove(name vedette.AccountName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, name)
}

type accountRun struct {
	account *account
	cancel  context.CancelFunc
	done    chan struct{} // closed when the account has ended
}

func (r *accountRun) hasEnded() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// SetAccounts replaces the accounts while the agent runs. Accounts that are equal to those before are
// not disturbed, and neither are the feeds of accounts whose properties alone have changed. It does
// not wait for accounts to connect or to end.
func (a *Agent) SetAccounts(ctx context.Context, accounts []Account) {
	select {
	case <-ctx.Done():
	case a.newAccounts <- accounts:
	}
}

// RereadCredentials makes all accounts read the files of their credentials now, instead of at their
// next interval. Only accounts whose credentials have changed connect again. It does not block.
func (a *Agent) RereadCredentials() {
	for _, account := range a.accounts.all() {
		notify(account.rereadNow)
	}
}

// notify puts a token into a channel with room for one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// runAccounts runs the accounts until ctx ends, and changes them as SetAccounts asks.
func (a *Agent) runAccounts(ctx context.Context) error {
	runs := accountRuns{agent: a, byName: map[vedette.AccountName]*accountRun{}}
	for _, account := range a.accounts.all() {
		runs.start(ctx, account)
	}
	defer runs.group.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case accounts := <-a.newAccounts:
			runs.change(ctx, accounts)
		}
	}
}

// accountRuns are the runs of an agent's accounts. It belongs to one goroutine.
type accountRuns struct {
	agent  *Agent
	group  sync.WaitGroup
	byName map[vedette.AccountName]*accountRun // also those of removed accounts, until they have ended
}

// start runs an account, after the run before it of the same name has ended: the account's old
// cluster must not report under the new registration. No other account waits for that.
func (r *accountRuns) start(ctx context.Context, account *account) {
	name := account.cfg.Name
	var ended <-chan struct{} // of the run before; not the run itself, which would keep its account in memory
	if before := r.byName[name]; before != nil {
		ended = before.done
	}
	runCtx, cancel := context.WithCancel(ctx)
	run := &accountRun{account: account, cancel: cancel, done: make(chan struct{})}
	r.byName[name] = run
	r.group.Go(func() {
		defer close(run.done)
		defer cancel()
		if ended != nil {
			<-ended
		}
		account.run(runCtx)
		if ctx.Err() == nil { // the account was removed or replaced; it may have an error that the server shows
			r.agent.link.Deregister(name)
		}
	})
}

// change starts, changes and stops accounts until they are as configured.
func (r *accountRuns) change(ctx context.Context, accounts []Account) {
	var added, changed, removed []vedette.AccountName
	wanted := map[vedette.AccountName]bool{}
	for _, cfg := range accounts {
		wanted[cfg.Name] = true
		switch current := r.agent.accounts.get(cfg.Name); {
		case current == nil:
			added = append(added, cfg.Name)
			r.replace(ctx, cfg)
		case current.change(cfg):
			changed = append(changed, cfg.Name)
		case !current.isConfiguredAs(cfg):
			changed = append(changed, cfg.Name)
			r.byName[cfg.Name].cancel()
			r.replace(ctx, cfg)
		}
	}
	for _, account := range r.agent.accounts.all() {
		if name := account.cfg.Name; !wanted[name] {
			removed = append(removed, name)
			r.agent.accounts.remove(name)
			r.byName[name].cancel()
		}
	}
	maps.DeleteFunc(r.byName, func(name vedette.AccountName, run *accountRun) bool { return !wanted[name] && run.hasEnded() })
	if len(added)+len(changed)+len(removed) > 0 {
		slices.Sort(removed)
		r.agent.log.Info("accounts have changed", "added", added, "changed", changed, "removed", removed)
	}
}

// replace makes an account known and runs it.
func (r *accountRuns) replace(ctx context.Context, cfg Account) {
	account := newAccount(r.agent, cfg)
	r.agent.accounts.put(account)
	r.start(ctx, account)
}

// change takes over another configuration if only the properties differ, which the agent does not use
// itself, and reports whether they do.
func (a *account) change(cfg Account) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !equalButProperties(a.cfg, cfg) || reflect.DeepEqual(a.properties, cfg.Properties) {
		return false
	}
	a.properties = cfg.Properties
	notify(a.propertiesChanged)
	return true
}

func (a *account) isConfiguredAs(cfg Account) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return equalButProperties(a.cfg, cfg) && reflect.DeepEqual(a.properties, cfg.Properties)
}

func equalButProperties(a, b Account) bool {
	a.Properties, b.Properties = vedette.Properties{}, vedette.Properties{}
	return reflect.DeepEqual(a, b)
}
