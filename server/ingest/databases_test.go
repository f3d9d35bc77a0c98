package ingest

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/test/databases"
)

// TestLockedAccountDoesNotBlockOthers locks the row of an account in the database. Changes of the
// agent's other account must be stored meanwhile.
func TestLockedAccountDoesNotBlockOthers(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		url := databases.PostgreSQL(t)
		testLock(t, url, "pgx", url)
	})
	t.Run("MariaDB", func(t *testing.T) {
		url := databases.MariaDB(t)
		dsn, err := databases.MySQLDSN(url)
		if err != nil {
			t.Fatal(err)
		}
		testLock(t, url, "mysql", dsn)
	})
}

func testLock(t *testing.T, url, driver, dsn string) {
	st, err := store.Open(t.Context(), sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	term := registerAccount(t, st)
	otherTerm := registerOtherAccount(t, st)
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
	responses, log := &fakeResponder{}, slog.New(slog.DiscardHandler)
	p := New(Config{}, st, NewHub(), log).NewPipeline("host", responses, log)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	putAll(t, p, upsert(term, "held", 1))
	eventually(t, "the task has not started", func() bool { return p.hasQueue("prod") })
	putAll(t, p, forOtherAccount(upsert(0, "free", 1), otherTerm, 100))
	eventually(t, "the other account is not stored while the first one is locked", func() bool { return storedVersions(t, st)["free"] == "1" })
	if responses.current().acked != 0 || storedVersions(t, st)["held"] != "" {
		t.Errorf("got %v stored and %d acknowledged while the account is locked", storedVersions(t, st), responses.current().acked)
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the account is not stored after it was unlocked", func() bool { return storedVersions(t, st)["held"] == "1" && responses.current().acked == 2 })
	cancel()
	<-done
}

func (p *Pipeline) hasQueue(account vedette.AccountName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queues[account] != nil
}

func eventually(t *testing.T, message string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal(message)
		}
	}
}
