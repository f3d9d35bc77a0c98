package accounts

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/versions"
)

var (
	podKind        = vedette.Kind{Name: "Pod"}
	deploymentKind = vedette.Kind{Group: "apps", Name: "Deployment"}
	widgetKind     = vedette.Kind{Group: "example.com", Name: "Widget"}
)

func feedIn(account vedette.AccountName, kind vedette.Kind, state vedette.FeedState) read.FeedStatus {
	return read.FeedStatus{Account: account, Feed: vedette.Feed{Kind: kind}, State: state}
}

// allFeeds returns live feeds of all decisive kinds, and others.
func allFeeds(account vedette.AccountName, others ...read.FeedStatus) []read.FeedStatus {
	var feeds []read.FeedStatus
	for _, kind := range decisiveKinds {
		feeds = append(feeds, feedIn(account, kind, vedette.FeedLive))
	}
	return append(feeds, others...)
}

func TestProgressNamesMissingKinds(t *testing.T) {
	with := func(kind vedette.Kind, state vedette.FeedState) []read.FeedStatus {
		return allFeeds("prod", feedIn("prod", kind, state))
	}
	for _, tt := range []struct {
		name              string
		feeds             []read.FeedStatus
		hasProblem        bool
		settled, complete bool
		missing           string
	}{
		{"nothing is declared", nil, false, false, false, "has not reported yet"},
		{"everything is live", allFeeds("prod"), false, true, true, ""},
		{"a kind waits", with(widgetKind, vedette.FeedPending), false, false, false, "1 of 11 kinds have not been read yet, for example Widget.example.com"},
		{"a kind is being read", with(podKind, vedette.FeedSyncing), false, false, false, "for example Pod"},
		{"a decisive kind fails", with(podKind, vedette.FeedFailing), false, false, false, "for example Pod"},
		{"another kind fails", with(widgetKind, vedette.FeedFailing), false, true, true, ""},
		{"a decisive kind is denied", with(podKind, vedette.FeedDenied), false, true, false, "may not read Pod: allow it"},
		{"another kind is denied", with(widgetKind, vedette.FeedDenied), false, true, true, ""},
		{"a kind is left out", []read.FeedStatus{feedIn("prod", podKind, vedette.FeedLive)}, false, true, true, ""},
		{"a kind was not found", []read.FeedStatus{feedIn("prod", podKind, vedette.FeedLive)}, true, true, false, "has not found ReplicaSet.apps"},
		{"all kinds were found in spite of a problem", allFeeds("prod"), true, true, true, ""},
	} {
		got := ProgressOf(tt.feeds, tt.hasProblem)
		if got.Settled != tt.settled || got.Complete != tt.complete || !strings.Contains(got.Missing, tt.missing) || (got.Missing == "") != tt.complete {
			t.Errorf("%s: got %+v, want settled %t, complete %t, missing %q", tt.name, got, tt.settled, tt.complete, tt.missing)
		}
	}
}

// syncMemory is a syncStore, and the Reporter of its accounts, in memory.
type syncMemory struct {
	*testing.T
	mu      sync.Mutex
	rows    map[vedette.AccountName]*registry.Sync
	feeds   map[vedette.AccountName][]read.FeedStatus
	away    map[vedette.AccountName]bool
	problem map[vedette.AccountName]bool
	changed map[vedette.AccountName]uint64
	last    uint64
	err     error
	reads   int // of feeds
}

func newSyncMemory(t *testing.T, names ...vedette.AccountName) *syncMemory {
	m := &syncMemory{T: t, rows: map[vedette.AccountName]*registry.Sync{}, feeds: map[vedette.AccountName][]read.FeedStatus{},
		away: map[vedette.AccountName]bool{}, problem: map[vedette.AccountName]bool{}, changed: map[vedette.AccountName]uint64{}}
	for _, name := range names {
		m.rows[name] = &registry.Sync{Account: name, Term: 1}
		m.setFeeds(name)
	}
	return m
}

func (m *syncMemory) setFeeds(name vedette.AccountName, feeds ...read.FeedStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.feeds[name], m.changed[name] = feeds, m.last
}

func (m *syncMemory) ChangedAccounts(since uint64) (changes versions.AccountChanges) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, at := range m.changed {
		if at > since {
			changes.Names = append(changes.Names, name)
		}
	}
	changes.Mark = m.last
	return changes
}

func (m *syncMemory) AccountSyncs(_ context.Context, names ...vedette.AccountName) (all []registry.Sync, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range m.rows {
		if len(names) == 0 || slices.Contains(names, row.Account) {
			all = append(all, *row)
		}
	}
	return all, m.err
}

func (m *syncMemory) Feeds(_ context.Context, names ...vedette.AccountName) (all []read.FeedStatus, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	for _, name := range names {
		all = append(all, m.feeds[name]...)
	}
	return all, m.err
}

func (m *syncMemory) MarkSettled(_ context.Context, name vedette.AccountName, term vedette.Term, complete bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if row := m.rows[name]; row != nil && row.Term == term && m.err == nil {
		row.Settled = time.Now()
		if complete {
			row.Complete = time.Now()
		}
		m.last++
		m.changed[name] = m.last
	}
	return m.err
}

func (m *syncMemory) Reports(name vedette.AccountName) (connected, hasProblem bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.away[name], m.problem[name]
}

// change changes what the store returns.
func (m *syncMemory) change(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

func (m *syncMemory) check(name vedette.AccountName, settled, complete bool) {
	m.Helper()
	time.Sleep(4 * firstSyncRetry)
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if row := m.rows[name]; row.Settled.IsZero() == settled || row.Complete.IsZero() == complete {
		m.Errorf("account %s is settled since %v and complete since %v, want %t and %t", name, row.Settled, row.Complete, settled, complete)
	}
}

// TestFirstSyncEndsWithAllKinds follows accounts through their first synchronization.
func TestFirstSyncEndsWithAllKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		m := newSyncMemory(t, "prod", "dev", "away", "odd")
		done := make(chan error)
		go func() { done <- NewFirstSyncs(m, m, discardLogger).Run(ctx) }()
		m.check("prod", false, false)

		m.setFeeds("prod", allFeeds("prod", feedIn("prod", widgetKind, vedette.FeedSyncing))...)
		m.check("prod", false, false)
		m.setFeeds("prod", allFeeds("prod", feedIn("prod", widgetKind, vedette.FeedLive))...)
		m.check("prod", true, true)

		m.setFeeds("dev", allFeeds("dev", feedIn("dev", podKind, vedette.FeedDenied))...)
		m.check("dev", true, false)
		m.setFeeds("dev", allFeeds("dev")...)
		m.check("dev", true, true)

		m.change(func() { m.away["away"] = true })
		m.setFeeds("away", allFeeds("away")...)
		m.check("away", false, false)
		m.change(func() { m.away["away"] = false })
		m.check("away", true, true)

		m.change(func() { m.problem["odd"] = true })
		m.setFeeds("odd", feedIn("odd", deploymentKind, vedette.FeedLive))
		m.check("odd", true, false)
		m.change(func() { m.problem["odd"] = false }) // for example, because the agent is configured to leave out the other kinds
		m.check("odd", true, true)

		reads := m.reads
		m.check("odd", true, true)
		if m.reads != reads {
			t.Errorf("feeds are read %d times while nothing changes, want 0", m.reads-reads)
		}

		m.change(func() { m.rows["new"] = &registry.Sync{Account: "new", Term: 1} })
		m.setFeeds("new", allFeeds("new")...)
		m.change(func() { m.err = errUnavailable })
		m.check("new", false, false)
		m.change(func() { m.err = nil })
		m.check("new", true, true)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestPartIsConfirmedInOneTerm checks that what an agent declared before it connected again does not count.
func TestPartIsConfirmedInOneTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFirstSyncs(nil, nil, nil)
		for i, tt := range []struct {
			term vedette.Term
			want bool
		}{{1, false}, {2, false}, {2, true}} {
			if got := f.isConfirmed(registry.Sync{Account: "prod", Term: tt.term}, Progress{isPart: true}); got != tt.want {
				t.Errorf("look %d: got %t, want %t", i, got, tt.want)
			}
			time.Sleep(firstSyncRetry)
		}
	})
}
