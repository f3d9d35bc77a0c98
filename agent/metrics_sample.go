package agent

import (
	"maps"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/metrics"
	"github.com/vedette-io/vedette/internal/metricset"
)

// accountStates are the usual states of an account. They always have a series, so that graphs show 0
// and not a gap.
var accountStates = []string{"reaching", "registered", "reporting", "standby", "refused"}

var feedStates = []vedette.FeedState{vedette.FeedPending, vedette.FeedSyncing, vedette.FeedLive, vedette.FeedFailing, vedette.FeedDenied}

// sampleMetrics reads the state of the agent for a scrape. It takes the locks that every heartbeat
// takes, and none that is held during I/O.
func (a *Agent) sampleMetrics() {
	to := &a.cfg.Metrics.State
	connected := 0.0
	if _, err := a.link.Status(); err == nil {
		connected = 1
	}
	to.Connected.Set(connected)
	to.OutboxBytes.Set(float64(a.box.Used()))
	to.OutboxLimit.Set(float64(a.cfg.OutboxBytes))
	to.OutboxUnacked.Set(float64(a.box.Unacknowledged()))
	to.OutboxAge.Set(max(0, time.Since(a.box.PendingSince()).Seconds()))
	to.OperationsRunning.Set(float64(a.RunningOperations()))
	running, limit := a.cfg.Watch.Limiter.Snapshots()
	to.Snapshots.Set(float64(running))
	to.SnapshotLimit.Set(float64(limit))
	a.sampleAccounts(to)
}

func (a *Agent) sampleAccounts(to *metrics.State) {
	accounts, feeds := map[string]int{}, map[vedette.FeedState]int{}
	for _, state := range accountStates {
		accounts[state] = 0
	}
	withErrors := 0
	withOldCredentials := 0
	withEndingCredentials := 0
	watches := 0
	loads := map[vedette.AccountName]accountLoad{}
	for _, account := range a.accounts.all() {
		l := account.load()
		loads[account.cfg.Name] = l
		accounts[l.state]++
		watches += l.watches
		if l.err != nil {
			withErrors++
		}
		areOld, areEnding := account.credentialProblems()
		if areOld {
			withOldCredentials++
		}
		if areEnding {
			withEndingCredentials++
		}
		for state, n := range l.feeds {
			feeds[state] += n
		}
	}
	for state, n := range accounts {
		to.Accounts.Set(float64(n), state)
	}
	total := 0
	for _, state := range feedStates {
		to.Feeds.Set(float64(feeds[state]), string(state))
		total += feeds[state]
	}
	to.AccountErrors.Set(float64(withErrors))
	to.OldCredentials.Set(float64(withOldCredentials))
	to.EndingCredentials.Set(float64(withEndingCredentials))
	to.Watches.Set(float64(watches))
	to.PredecessorWatches.Set(float64(watches))
	to.PredecessorResources.Set(float64(total))
	sampleEachAccount(&a.cfg.Metrics.Accounts, loads)
}

// sampleEachAccount reads the metrics of single accounts, if they are enabled.
func sampleEachAccount(to *metrics.AccountState, loads map[vedette.AccountName]accountLoad) {
	if to.Limit == 0 {
		return
	}
	names := metricset.FirstNames(slices.Collect(maps.Keys(loads)), to.Limit)
	for _, name := range names {
		l, account := loads[name], string(name)
		to.State.Set(1, account, l.state)
		to.Error.Set(hasError(l.err), account)
		to.Watches.Set(float64(l.watches), account)
		for _, state := range feedStates {
			to.Feeds.Set(float64(l.feeds[state]), account, string(state))
		}
	}
	to.Without.Set(float64(len(loads) - len(names)))
}

func hasError(err error) float64 {
	if err == nil {
		return 0
	}
	return 1
}

type accountLoad struct {
	state   string
	err     error
	watches int
	feeds   map[vedette.FeedState]int // by state, while the agent reports the account
}

func (a *account) load() accountLoad {
	a.mu.Lock()
	err := a.errorLocked()
	if vedette.KindOf(err) == vedette.Waiting {
		err = nil
	}
	l := accountLoad{state: string(a.state), err: err}
	watcher, announcements := a.watcher, a.feeds
	a.mu.Unlock()
	if l.state == "reporting" && watcher != nil {
		l.feeds = map[vedette.FeedState]int{}
		announcements.countStates(l.feeds)
		l.watches = watcher.Watches()
	}
	return l
}
