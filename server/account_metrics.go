package server

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/metricset"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/metrics"
	"github.com/vedette-io/vedette/server/store/read"
)

// accountCounts are the feeds of each account, as they were counted last.
type accountCounts = map[vedette.AccountName]map[vedette.FeedState]read.FeedCount

type accountMetrics struct {
	to     *metrics.Accounts
	counts atomic.Pointer[accountCounts] // nil until they were counted
}

func (m *accountMetrics) isEnabled() bool { return m.to.Limit > 0 }

// sample sets the metrics of the first accounts by name, among those that an agent has registered and
// those in the database.
func (m *accountMetrics) sample(loads []assigner.AccountLoad) {
	counts := accountCounts{}
	if counted := m.counts.Load(); counted != nil {
		counts = *counted
	}
	byName := map[vedette.AccountName]assigner.AccountLoad{}
	for name := range counts {
		byName[name] = assigner.AccountLoad{State: assigner.Orphaned}
	}
	for _, l := range loads {
		byName[l.Account] = l
	}
	names := metricset.FirstNames(slices.Collect(maps.Keys(byName)), m.to.Limit)
	for _, name := range names {
		m.sampleAccount(string(name), byName[name], counts[name])
	}
	m.to.Without.Set(float64(len(byName) - len(names)))
}

func (m *accountMetrics) sampleAccount(account string, l assigner.AccountLoad, counts map[vedette.FeedState]read.FeedCount) {
	m.to.State.Set(1, account, string(l.State))
	if l.State != assigner.Orphaned {
		m.to.Freshness.Set(l.Age.Seconds(), account)
	}
	if counts == nil {
		return
	}
	objects, drift := int64(0), int64(0)
	for _, state := range vedette.FeedStates {
		m.to.Feeds.Set(float64(counts[state].Feeds), account, string(state))
		objects += counts[state].Objects
		drift += counts[state].Drift
	}
	m.to.Objects.Set(float64(objects), account)
	m.to.Drift.Set(float64(drift), account)
}
