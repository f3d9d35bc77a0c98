package ingest

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/test/databases"
)

// TestALockOnOneAccount has somebody hold the row of an account in the database. The
// agent's other account is stored meanwhile.
func TestALockOnOneAccount(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		at := databases.PostgreSQL(t)
		testLock(t, at, "pgx", at)
	})
	t.Run("MariaDB", func(t *testing.T) {
		at := databases.MariaDB(t)
		dsn, err := databases.MySQLDSN(at)
		if err != nil {
			t.Fatal(err)
		}
		testLock(t, at, "mysql", dsn)
	})
}

func testLock(t *testing.T, at, driver, dsn string) {
	st, err := store.Open(t.Context(), store.Config{URL: at})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	term := registered(t, st)
	otherTerm := other(t, st)
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lock, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Rollback()
	var id int64
	if err := lock.QueryRowContext(t.Context(), `SELECT id FROM accounts WHERE name = 'prod' FOR UPDATE`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	a, log := &agent{}, slog.New(slog.DiscardHandler)
	l := New(Config{}, st, NewHub(), log).Lane("host", a, log)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	putAll(t, l, upsert(term, "held", 1))
	await(t, "nothing is begun", func() bool { return l.busyWith("prod") })
	putAll(t, l, ofOther(upsert(0, "free", 1), otherTerm, 100))
	await(t, "the other account is not stored while the first is locked", func() bool { return stored(t, st)["free"] == "1" })
	if a.now().acked != 0 || stored(t, st)["held"] != "" {
		t.Errorf("%v are stored and %d acknowledged while the account is locked", stored(t, st), a.now().acked)
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	await(t, "the account is not stored when it is free", func() bool { return stored(t, st)["held"] == "1" && a.now().acked == 2 })
	cancel()
	<-done
}

func (l *Lane) busyWith(account vedette.AccountName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queues[account] != nil
}

func await(t *testing.T, missing string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(missing)
		}
	}
}
