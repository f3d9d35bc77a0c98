package accounts

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

var quiet = slog.New(slog.DiscardHandler)

// shelf is a book in memory.
type shelf struct {
	mu      sync.Mutex
	rows    map[vedette.AccountName]store.AccountRow
	away    bool          // the database does not answer
	slow    time.Duration // what the next look at the accounts takes
	removed []vedette.AccountName
	retired []vedette.AccountName
	sweeps  int
}

var errAway = vedette.Errorf(vedette.Unavailable, "the database is away")

func (s *shelf) Register(_ context.Context, a vedette.Account) (store.AccountRow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.rows[a.Name]
	switch {
	case s.away:
		return row, errAway
	case ok && !row.Cluster.Same(a.Cluster):
		return row, vedette.Errorf(vedette.Conflict, "another cluster")
	}
	return row, nil
}

func (s *shelf) Accounts(context.Context) (rows []store.AccountRow, err error) {
	s.mu.Lock()
	slow := s.slow
	s.slow = 0
	s.mu.Unlock()
	time.Sleep(slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errAway
	}
	for _, row := range s.rows {
		rows = append(rows, row)
	}
	return rows, nil
}

func (s *shelf) RemoveOrphan(_ context.Context, name vedette.AccountName, term vedette.Term) (bool, error) {
	return s.take(&s.removed, name, term)
}

func (s *shelf) RetireOrphan(_ context.Context, name vedette.AccountName, term vedette.Term) (bool, error) {
	return s.take(&s.retired, name, term)
}

func (s *shelf) take(to *[]vedette.AccountName, name vedette.AccountName, term vedette.Term) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.rows[name]
	if !ok || row.Term != term || row.Orphaned.IsZero() {
		return false, nil
	}
	delete(s.rows, name)
	*to = append(*to, name)
	return true, nil
}

func (s *shelf) Sweep(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweeps++
	return nil
}

func (s *shelf) set(change func(*shelf)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *shelf) there(name vedette.AccountName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.rows[name]
	return ok
}

// orphanOf is an account that no agent has served for the time.
func orphanOf(name vedette.AccountName, since time.Duration) store.AccountRow {
	return store.AccountRow{Account: account(name), Term: 1, Orphaned: time.Now().Add(-since)}
}

func account(name vedette.AccountName) vedette.Account {
	return vedette.Account{Name: name, Cluster: vedette.Cluster{UID: "uid-" + string(name)}}
}

// alive runs Accounts over a book that holds rows, within a bubble.
func alive(t *testing.T, cfg Config, rows func() []store.AccountRow, test func(*shelf, *Accounts)) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{rows: map[vedette.AccountName]store.AccountRow{}}
		for _, row := range rows() {
			s.rows[row.Name] = row
		}
		ctx, stop := context.WithCancel(t.Context())
		a, done := New(cfg, s, quiet), make(chan error)
		go func() { done <- a.Run(ctx) }()
		test(s, a)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestGraceCountsFromTheStart starts a server after an outage that was far longer
// than the grace period, whichever clock noted when it began.
func TestGraceCountsFromTheStart(t *testing.T) {
	for why, since := range map[string]time.Duration{
		"stopped for a day": 24 * time.Hour, "a clock that was ahead": -24 * time.Hour, "just now": 0, "in 1970": time.Since(time.Unix(1, 0)),
	} {
		rows := func() []store.AccountRow { return []store.AccountRow{orphanOf("prod", since)} }
		alive(t, Config{Grace: 10 * time.Minute}, rows, func(s *shelf, _ *Accounts) {
			time.Sleep(10*time.Minute - time.Second)
			if !s.there("prod") {
				t.Errorf("%s: removed within the grace period", why)
			}
			time.Sleep(time.Minute)
			s.set(func(s *shelf) {
				if !slices.Equal(s.removed, []vedette.AccountName{"prod"}) {
					t.Errorf("%s: after the grace period %v are removed", why, s.removed)
				}
			})
		})
	}
}

func TestGraceBeginsAnewWithEachAgent(t *testing.T) {
	rows := func() []store.AccountRow { return []store.AccountRow{orphanOf("prod", 0)} }
	alive(t, Config{Grace: 10 * time.Minute}, rows, func(s *shelf, _ *Accounts) {
		for term := range vedette.Term(5) {
			time.Sleep(9 * time.Minute)
			s.set(func(s *shelf) { row := orphanOf("prod", 0); row.Term = term + 2; s.rows["prod"] = row })
		}
		if !s.there("prod") {
			t.Error("removed though an agent served it all nine minutes")
		}
	})
}

// TestAgentWithoutDatabase has an agent register while the database is away, in
// the last moment of the grace period.
func TestAgentWithoutDatabase(t *testing.T) {
	rows := func() []store.AccountRow { return []store.AccountRow{orphanOf("prod", 0)} }
	alive(t, Config{Grace: 10 * time.Minute}, rows, func(s *shelf, a *Accounts) {
		time.Sleep(9 * time.Minute)
		s.set(func(s *shelf) { s.away = true })
		time.Sleep(time.Hour)
		if _, err := a.Register(t.Context(), account("prod")); !errors.Is(err, errAway) {
			t.Errorf("got %v", err)
		}
		s.set(func(s *shelf) { s.away = false })
		time.Sleep(9 * time.Minute)
		if !s.there("prod") {
			t.Error("removed though an agent was there nine minutes ago")
		}
	})
}

// TestAnotherClusterIsNoAgent asks that a stranger does not keep an account.
func TestAnotherClusterIsNoAgent(t *testing.T) {
	rows := func() []store.AccountRow { return []store.AccountRow{orphanOf("prod", 0)} }
	alive(t, Config{Grace: 10 * time.Minute}, rows, func(s *shelf, a *Accounts) {
		time.Sleep(9 * time.Minute)
		if _, err := a.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "another"}}); vedette.KindOf(err) != vedette.Conflict {
			t.Errorf("got %v", err)
		}
		time.Sleep(2 * time.Minute)
		if s.there("prod") {
			t.Error("kept by a stranger")
		}
	})
}

// TestTimeThatDoesNotCount lets the database be away, and the process be frozen,
// for longer than the grace period.
func TestTimeThatDoesNotCount(t *testing.T) {
	for why, pass := range map[string]func(*shelf){
		"database away": func(s *shelf) {
			s.set(func(s *shelf) { s.away = true })
			time.Sleep(time.Hour)
			s.set(func(s *shelf) { s.away = false })
		},
		"frozen": func(s *shelf) { s.set(func(s *shelf) { s.slow = time.Hour }); time.Sleep(time.Hour + 10*time.Second) },
	} {
		rows := func() []store.AccountRow { return []store.AccountRow{orphanOf("prod", 0)} }
		alive(t, Config{Grace: 10 * time.Minute}, rows, func(s *shelf, _ *Accounts) {
			time.Sleep(5 * time.Minute)
			pass(s)
			time.Sleep(4 * time.Minute)
			if !s.there("prod") {
				t.Errorf("%s: time counted in which no agent could have come", why)
			}
			time.Sleep(2 * time.Minute)
			if s.there("prod") {
				t.Errorf("%s: not removed any more", why)
			}
		})
	}
}

// TestKeptData holds what accounts.removeData: false means.
func TestKeptData(t *testing.T) {
	rows := func() []store.AccountRow { return []store.AccountRow{orphanOf("prod", 0)} }
	alive(t, Config{Grace: 10 * time.Minute, KeepData: true}, rows, func(s *shelf, _ *Accounts) {
		time.Sleep(11 * time.Minute)
		s.set(func(s *shelf) {
			if !slices.Equal(s.retired, []vedette.AccountName{"prod"}) || len(s.removed) > 0 {
				t.Errorf("retired %v, removed %v", s.retired, s.removed)
			}
			if s.sweeps == 0 {
				t.Error("what earlier removals have left was not swept")
			}
		})
	})
}

func TestUnidentifiableClusters(t *testing.T) {
	a := New(Config{}, &shelf{rows: map[vedette.AccountName]store.AccountRow{}}, quiet)
	for _, cluster := range []vedette.Cluster{{}, {Host: "http://localhost:8001"}, {Fingerprint: "AA"}} {
		if _, err := a.Register(t.Context(), vedette.Account{Name: "prod", Cluster: cluster}); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%+v: got %v", cluster, err)
		}
	}
	if _, err := a.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{Host: "https://10.0.0.1", Fingerprint: "AA"}}); err != nil {
		t.Error(err)
	}
}
