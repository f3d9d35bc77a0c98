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
	"github.com/vedette-io/vedette/server/store/registry"
)

var discardLogger = slog.New(slog.DiscardHandler)

// memoryStore is an accountStore in memory.
type memoryStore struct {
	adminStore  // operators decide nothing in these tests
	mu          sync.Mutex
	rows        map[vedette.AccountName]registry.Account
	unavailable bool          // calls fail with errUnavailable
	delay       time.Duration // how long the next call of Accounts takes
	removed     []vedette.AccountName
	retired     []vedette.AccountName
	sweeps      int
}

var errUnavailable = vedette.Errorf(vedette.Unavailable, "the database is unavailable")

func (s *memoryStore) Register(_ context.Context, a vedette.Account) (registry.Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.rows[a.Name]
	switch {
	case s.unavailable:
		return row, errUnavailable
	case ok && !row.Cluster.Same(a.Cluster):
		return row, vedette.Errorf(vedette.Conflict, "another cluster")
	}
	return row, nil
}

func (s *memoryStore) OrphanedAccounts(context.Context) (rows []registry.Account, err error) {
	s.mu.Lock()
	delay := s.delay
	s.delay = 0
	s.mu.Unlock()
	time.Sleep(delay)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unavailable {
		return nil, errUnavailable
	}
	for _, row := range s.rows {
		if !row.Orphaned.IsZero() {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (s *memoryStore) RemoveOrphan(_ context.Context, name vedette.AccountName, term vedette.Term) (bool, error) {
	return s.removeRow(&s.removed, name, term)
}

func (s *memoryStore) RetireOrphan(_ context.Context, name vedette.AccountName, term vedette.Term) (bool, error) {
	return s.removeRow(&s.retired, name, term)
}

func (s *memoryStore) removeRow(removed *[]vedette.AccountName, name vedette.AccountName, term vedette.Term) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.rows[name]
	if !ok || row.Term != term || row.Orphaned.IsZero() {
		return false, nil
	}
	delete(s.rows, name)
	*removed = append(*removed, name)
	return true, nil
}

func (s *memoryStore) Sweep(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweeps++
	return nil
}

func (s *memoryStore) update(change func(*memoryStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *memoryStore) exists(name vedette.AccountName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.rows[name]
	return ok
}

// orphanRow returns an account that has had no agent since the given time ago.
func orphanRow(name vedette.AccountName, since time.Duration) registry.Account {
	return registry.Account{Account: testAccount(name), Term: 1, Orphaned: time.Now().Add(-since)}
}

func testAccount(name vedette.AccountName) vedette.Account {
	return vedette.Account{Name: name, Cluster: vedette.Cluster{UID: "uid-" + string(name)}}
}

// runAccounts runs Accounts over a store that holds rows, in a synctest bubble.
func runAccounts(t *testing.T, cfg Config, rows func() []registry.Account, test func(*memoryStore, *Accounts)) {
	synctest.Test(t, func(t *testing.T) {
		s := &memoryStore{rows: map[vedette.AccountName]registry.Account{}}
		for _, row := range rows() {
			s.rows[row.Name] = row
		}
		ctx, stop := context.WithCancel(t.Context())
		a, done := New(cfg, s, discardLogger), make(chan error)
		go func() { done <- a.Run(ctx) }()
		test(s, a)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestGraceCountsFromServerStart starts a server after an outage that was much longer than the
// grace period. The start of the outage was recorded by clocks that are right, ahead or behind.
func TestGraceCountsFromServerStart(t *testing.T) {
	for name, since := range map[string]time.Duration{
		"stopped for a day": 24 * time.Hour, "clock ahead by a day": -24 * time.Hour, "just now": 0, "in 1970": time.Since(time.Unix(1, 0)),
	} {
		rows := func() []registry.Account { return []registry.Account{orphanRow("prod", since)} }
		runAccounts(t, Config{Grace: 10 * time.Minute}, rows, func(s *memoryStore, _ *Accounts) {
			time.Sleep(10*time.Minute - time.Second)
			if !s.exists("prod") {
				t.Errorf("%s: account was removed before the grace period ended", name)
			}
			time.Sleep(time.Minute)
			s.update(func(s *memoryStore) {
				if !slices.Equal(s.removed, []vedette.AccountName{"prod"}) {
					t.Errorf("%s: after the grace period, got %v removed", name, s.removed)
				}
			})
		})
	}
}

func TestGraceRestartsWithEachAgent(t *testing.T) {
	rows := func() []registry.Account { return []registry.Account{orphanRow("prod", 0)} }
	runAccounts(t, Config{Grace: 10 * time.Minute}, rows, func(s *memoryStore, _ *Accounts) {
		for term := range vedette.Term(5) {
			time.Sleep(9 * time.Minute)
			s.update(func(s *memoryStore) { row := orphanRow("prod", 0); row.Term = term + 2; s.rows["prod"] = row })
		}
		if !s.exists("prod") {
			t.Error("account was removed, but an agent served it every nine minutes")
		}
	})
}

// TestRegistrationResetsGraceWithoutDatabase registers an account while the database is
// unavailable, just before the grace period ends.
func TestRegistrationResetsGraceWithoutDatabase(t *testing.T) {
	rows := func() []registry.Account { return []registry.Account{orphanRow("prod", 0)} }
	runAccounts(t, Config{Grace: 10 * time.Minute}, rows, func(s *memoryStore, a *Accounts) {
		time.Sleep(9 * time.Minute)
		s.update(func(s *memoryStore) { s.unavailable = true })
		time.Sleep(time.Hour)
		if _, err := a.Register(t.Context(), testAccount("prod")); !errors.Is(err, errUnavailable) {
			t.Errorf("Register: got %v, want errUnavailable", err)
		}
		s.update(func(s *memoryStore) { s.unavailable = false })
		time.Sleep(9 * time.Minute)
		if !s.exists("prod") {
			t.Error("account was removed, but an agent registered it nine minutes ago")
		}
	})
}

// TestOtherClusterDoesNotResetGrace checks that a registration for another cluster does not keep an
// account.
func TestOtherClusterDoesNotResetGrace(t *testing.T) {
	rows := func() []registry.Account { return []registry.Account{orphanRow("prod", 0)} }
	runAccounts(t, Config{Grace: 10 * time.Minute}, rows, func(s *memoryStore, a *Accounts) {
		time.Sleep(9 * time.Minute)
		if _, err := a.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "another"}}); vedette.KindOf(err) != vedette.Conflict {
			t.Errorf("Register: got %v, want a conflict", err)
		}
		time.Sleep(2 * time.Minute)
		if s.exists("prod") {
			t.Error("account was kept because of a registration for another cluster")
		}
	})
}

// TestDowntimeDoesNotCountTowardsGrace makes the database unavailable, or freezes the process, for
// longer than the grace period.
func TestDowntimeDoesNotCountTowardsGrace(t *testing.T) {
	for name, elapse := range map[string]func(*memoryStore){
		"database unavailable": func(s *memoryStore) {
			s.update(func(s *memoryStore) { s.unavailable = true })
			time.Sleep(time.Hour)
			s.update(func(s *memoryStore) { s.unavailable = false })
		},
		"frozen": func(s *memoryStore) {
			s.update(func(s *memoryStore) { s.delay = time.Hour })
			time.Sleep(time.Hour + 10*time.Second)
		},
	} {
		rows := func() []registry.Account { return []registry.Account{orphanRow("prod", 0)} }
		runAccounts(t, Config{Grace: 10 * time.Minute}, rows, func(s *memoryStore, _ *Accounts) {
			time.Sleep(5 * time.Minute)
			elapse(s)
			time.Sleep(4 * time.Minute)
			if !s.exists("prod") {
				t.Errorf("%s: downtime counted towards the grace period", name)
			}
			time.Sleep(2 * time.Minute)
			if s.exists("prod") {
				t.Errorf("%s: account was not removed after the grace period", name)
			}
		})
	}
}

// TestKeptDataIsRetired tests accounts.removeData: false.
func TestKeptDataIsRetired(t *testing.T) {
	rows := func() []registry.Account { return []registry.Account{orphanRow("prod", 0)} }
	runAccounts(t, Config{Grace: 10 * time.Minute, KeepData: true}, rows, func(s *memoryStore, _ *Accounts) {
		time.Sleep(11 * time.Minute)
		s.update(func(s *memoryStore) {
			if !slices.Equal(s.retired, []vedette.AccountName{"prod"}) || len(s.removed) > 0 {
				t.Errorf("got retired %v and removed %v, want all retired", s.retired, s.removed)
			}
			if s.sweeps == 0 {
				t.Error("Sweep was not called")
			}
		})
	})
}

func TestUnidentifiableClustersAreRefused(t *testing.T) {
	a := New(Config{}, &memoryStore{rows: map[vedette.AccountName]registry.Account{}}, discardLogger)
	for _, cluster := range []vedette.Cluster{{}, {Host: "http://localhost:8001"}, {Fingerprint: "AA"}} {
		if _, err := a.Register(t.Context(), vedette.Account{Name: "prod", Cluster: cluster}); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%+v: got error %v", cluster, err)
		}
	}
	if _, err := a.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{Host: "https://10.0.0.1", Fingerprint: "AA"}}); err != nil {
		t.Error(err)
	}
}
