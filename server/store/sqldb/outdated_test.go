package sqldb_test

import (
	"context"
	"database/sql"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/databases"
)

// TestStatementsSurviveMigrations changes the types of columns, as another server does that migrates the database, while connections have
// statements that read them. Servers that start together wait for the one that migrates, and others go on running.
func TestStatementsSurviveMigrations(t *testing.T) {
	t.Parallel()
	url := databases.PostgreSQL(t)
	s, other := storetest.Open(t, url), storetest.Open(t, url)
	if _, err := s.Register(t.Context(), vedette.Account{Name: "prod"}); err != nil {
		t.Fatal(err)
	}
	const connections = 4
	var names [2 * connections]string
	statement := sqldb.Named("read a name", `SELECT name FROM accounts`)
	readAll := func() error { // on several connections at once
		var all errgroup.Group
		for i := range connections {
			all.Go(func() error { return s.QueryOne(t.Context(), sqldb.ScanInto(&names[i]), statement) })
			all.Go(func() error {
				return s.Write(t.Context(), func(ctx context.Context, tx *sqldb.Tx) error {
					return tx.QueryEach(ctx, func(rows *sql.Rows) error { return rows.Scan(&names[connections+i]) }, statement)
				})
			})
		}
		return all.Wait()
	}
	for _, columnType := range []string{"varchar(300)", "text"} {
		if err := readAll(); err != nil {
			t.Fatal(err)
		}
		err := other.Write(t.Context(), func(ctx context.Context, tx *sqldb.Tx) error {
			_, err := tx.Exec(ctx, sqldb.Named("migrate", `ALTER TABLE accounts ALTER COLUMN name TYPE `+columnType+` COLLATE "C"`))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := readAll(); err != nil {
			t.Errorf("after a migration to %s: %v", columnType, err)
		}
		if _, err := s.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "a", Server: "s"}); err != nil {
			t.Errorf("acquire after a migration to %s: %v", columnType, err)
		}
	}
}
