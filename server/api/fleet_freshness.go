package api

import (
	"fmt"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// fleetFreshnessCache keeps the freshness of a large fleet for a second, because it depends on the
// agent of each account.
type fleetFreshnessCache struct {
	mu      sync.Mutex
	of      *inventory
	at      time.Time
	state   *fleetState
	entries map[string]freshness // by filter
}

const (
	// maxExactAccounts is the number of accounts whose agents each request looks at.
	maxExactAccounts = 500
	// fleetFreshnessMaxAge is far below StaleAfter.
	fleetFreshnessMaxAge = time.Second
	// maxFleetEntries bounds the memory of the cache: callers choose the filters.
	maxFleetEntries = 100
)

// fleetState is the state of the agents of all accounts.
type fleetState struct {
	stale  []*accountEntry // whose live feeds are stale
	agents map[*accountEntry]agentState
	oldest time.Time // the oldest report of the other agents; zero if there are none
}

// fleetFreshness is freshnessOf for a filter that selects all accounts. Its cost depends on the
// number of accounts that are stale or have feeds that are not live. The watermark is not later
// than that of any account, whatever its kinds.
func (a *api) fleetFreshness(i *inventory, f filter, now time.Time) freshness {
	if len(i.accounts) <= maxExactAccounts {
		return a.buildFleetFreshness(i, a.newFleetState(i, now), f, now)
	}
	c := &a.fleetCache
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of != i || now.Sub(c.at) > fleetFreshnessMaxAge {
		c.of, c.at, c.state, c.entries = i, now, a.newFleetState(i, now), map[string]freshness{}
	}
	key := fmt.Sprintf("%q %v", f.Namespace, f.kinds)
	entry, ok := c.entries[key]
	if !ok {
		entry = a.buildFleetFreshness(i, c.state, f, c.at)
		if len(c.entries) < maxFleetEntries {
			c.entries[key] = entry
		}
	}
	return entry
}

func (a *api) newFleetState(i *inventory, now time.Time) *fleetState {
	s := &fleetState{agents: map[*accountEntry]agentState{}}
	for _, account := range i.accounts {
		agent := a.agentState(account.name)
		switch {
		case !a.isFresh(agent, now):
			s.stale = append(s.stale, account)
			s.agents[account] = agent
		case s.oldest.IsZero() || agent.seen.Before(s.oldest):
			s.oldest = agent.seen
		}
	}
	return s
}

// buildFleetFreshness adds the stale accounts, the other accounts' feeds that are not live, and the
// number of all feeds.
func (a *api) buildFleetFreshness(i *inventory, s *fleetState, f filter, now time.Time) freshness {
	b := newFreshnessBuilder()
	for _, account := range s.stale {
		for _, feed := range account.feeds {
			if f.selectsFeed(feed.Feed) {
				b.add(a.feedFreshness(feed, s.agents[account], now))
			}
		}
	}
	for _, account := range i.attention {
		if _, added := s.agents[account]; added {
			continue
		}
		agent := a.agentState(account.name)
		for _, feed := range account.notLive {
			if f.selectsFeed(feed.Feed) {
				b.add(a.feedFreshness(feed, agent, now))
			}
		}
	}
	all := i.countFeeds(f)
	if all > b.out.FeedCount && !s.oldest.IsZero() {
		b.addWatermark(s.oldest)
	}
	b.out.FeedCount = all
	return b.freshness()
}

// countFeeds returns the number of feeds that a filter of all accounts selects.
func (i *inventory) countFeeds(f filter) int {
	n := 0
	if len(f.kinds) == 0 {
		for _, kind := range i.kinds {
			n += kind.count(f.Namespace)
		}
		return n
	}
	for _, name := range f.kinds {
		if kind := i.kinds[name]; kind != nil {
			n += kind.count(f.Namespace)
		}
	}
	return n
}

// count returns the number of feeds with objects of a namespace, or of all if it is empty.
func (k *kindEntry) count(namespace string) int {
	if namespace == "" {
		return k.total
	}
	return k.feeds[""] + k.feeds[namespace]
}

// kindsOf returns the kinds of resources.
func kindsOf(resources []vedette.Resource) []vedette.Kind {
	var kinds []vedette.Kind
	for _, r := range resources {
		kinds = append(kinds, r.Kind)
	}
	return kinds
}
