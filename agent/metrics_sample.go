package agent

import (
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/metrics"
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
	to.OperationsRunning.Set(float64(a.executor.Running()))
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
	withErrors, watches := 0, 0
	for _, account := range a.accounts.all() {
		l := account.load(feeds)
		accounts[l.state]++
		watches += l.watches
		if l.hasError {
			withErrors++
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
	to.Watches.Set(float64(watches))
	to.PredecessorWatches.Set(float64(watches))
	to.PredecessorResources.Set(float64(total))
}

// accountLoad is what a scrape reads of one account.
type accountLoad struct {
	state    string
	hasError bool
	watches  int
}

// load adds the feeds of a reporting account to a count by state.
func (a *account) load(feeds map[vedette.FeedState]int) accountLoad {
	a.mu.Lock()
	err := a.errorLocked()
	l := accountLoad{state: a.state, hasError: err != nil && vedette.KindOf(err) != vedette.Waiting}
	watcher, announcements := a.watcher, a.feeds
	a.mu.Unlock()
	if l.state == "reporting" && watcher != nil {
		announcements.countStates(feeds)
		l.watches = watcher.Watches()
	}
	return l
}
