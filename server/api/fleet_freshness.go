package api

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
)

const (
	// maxExactAccounts is the number of accounts whose agents each request looks at.
	maxExactAccounts = 500
	// fleetFreshnessMaxAge is far below StaleAfter.
	fleetFreshnessMaxAge = time.Second
	// maxFleetEntries bounds the memory of a fleetState: callers choose the filters.
	maxFleetEntries = 100
)

// fleetState is the state of the agents of all accounts. A large fleet keeps it for a second, because it depends on the
// agent of each account.
type fleetState struct {
	list *accountfeeds.List
	at   time.Time

	stale  []*accountfeeds.Account // whose live feeds are stale
	agents map[*accountfeeds.Account]agentState
	oldest time.Time // the oldest report of the other agents; zero if there are none

	mu      sync.Mutex
	entries map[string]freshness // by filter
}

// fleetFreshness is freshnessOf for a filter that selects all accounts. Its cost depends on the
// number of accounts that are stale or have feeds that are not live. The watermark is not later
// than that of any account, whatever its kinds.
func (a *api) fleetFreshness(ctx context.Context, i *accountfeeds.List, f filter, now time.Time) (freshness, error) {
	if len(i.Accounts) <= maxExactAccounts {
		return a.buildFleetFreshness(a.newFleetState(i, now), f), nil
	}
	isCurrent := func(s *fleetState) bool { return s.list == i && now.Sub(s.at) <= fleetFreshnessMaxAge }
	s, err := a.fleetStates.Get(ctx, isCurrent, func(context.Context, *fleetState) (*fleetState, error) {
		return a.newFleetState(i, now), nil
	})
	if err != nil {
		return freshness{}, err
	}
	key := fmt.Sprintf("%q %v", f.Namespace, f.kinds)
	if entry, ok := s.entry(key); ok {
		return entry, nil
	}
	entry := a.buildFleetFreshness(s, f)
	s.keep(key, entry)
	return entry, nil
}

func (s *fleetState) entry(key string) (freshness, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, ok := s.entries[key]
	return entry, ok
}

func (s *fleetState) keep(key string, entry freshness) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.entries) < maxFleetEntries {
		s.entries[key] = entry
	}
}

func (a *api) newFleetState(i *accountfeeds.List, now time.Time) *fleetState {
	s := &fleetState{list: i, at: now, agents: map[*accountfeeds.Account]agentState{}, entries: map[string]freshness{}}
	for _, account := range i.Accounts {
		agent := a.agentState(account.Name)
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
func (a *api) buildFleetFreshness(s *fleetState, f filter) freshness {
	b := newFreshnessBuilder()
	i, now := s.list, s.at
	for _, account := range s.stale {
		for _, feed := range account.Feeds {
			if f.selectsFeed(feed.Feed) {
				b.add(a.feedFreshness(feed, s.agents[account], now))
			}
		}
	}
	for _, account := range i.Attention {
		if _, added := s.agents[account]; added {
			continue
		}
		agent := a.agentState(account.Name)
		for _, feed := range account.NotLive {
			if f.selectsFeed(feed.Feed) {
				b.add(a.feedFreshness(feed, agent, now))
			}
		}
	}
	all := i.CountFeeds(f.kinds, f.Namespace)
	if all > b.out.FeedCount && !s.oldest.IsZero() {
		b.addWatermark(s.oldest)
	}
	b.out.FeedCount = all
	return b.freshness()
}

func kindsOf(resources []vedette.Resource) []vedette.Kind {
	var kinds []vedette.Kind
	for _, r := range resources {
		kinds = append(kinds, r.Kind)
	}
	return kinds
}
