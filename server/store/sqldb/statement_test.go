package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/store/sqldb"
)

// TestErrorsNameTheirStatement fails a statement in each of the ways in which statements run.
func TestErrorsNameTheirStatement(t *testing.T) {
	f := newFixture(t)
	wrong := sqldb.Named("count the sheep", `SELECT n FROM sheep`)
	scanNothing := func(*sql.Rows) error { return nil }
	inTx := func(do func(ctx context.Context, tx *sqldb.Tx) error) error { return f.Write(t.Context(), do) }
	var n int
	for name, err := range map[string]error{
		"read rows":  f.QueryEach(t.Context(), scanNothing, wrong),
		"read a row": f.QueryOne(t.Context(), sqldb.ScanInto(&n), wrong),
		"write":      func() error { _, err := f.ExecWrite(t.Context(), wrong); return err }(),
		"prepare":    f.DB.Prepare(t.Context(), sqldb.ReadPool, wrong),
		"execute in a transaction": inTx(func(ctx context.Context, tx *sqldb.Tx) error {
			_, err := tx.Exec(ctx, wrong)
			return err
		}),
		"read rows in a transaction": inTx(func(ctx context.Context, tx *sqldb.Tx) error { return tx.QueryEach(ctx, scanNothing, wrong) }),
		"read a row in a transaction": inTx(func(ctx context.Context, tx *sqldb.Tx) error {
			return tx.QueryRow(ctx, wrong).Scan(&n)
		}),
	} {
		if err == nil || !strings.Contains(err.Error(), "count the sheep: ") {
			t.Errorf("%s: got %v, want an error with the name of the statement", name, err)
		}
	}
	none := sqldb.Named("find nothing", `SELECT id FROM accounts WHERE name = 'nobody'`)
	if err := f.QueryOne(t.Context(), sqldb.ScanInto(&n), none); !errors.Is(err, sql.ErrNoRows) || err.Error() != sql.ErrNoRows.Error() {
		t.Errorf("no row: got %v, want %v", err, sql.ErrNoRows)
	}
	stop := errors.New("enough")
	all := sqldb.Named("read all", `SELECT id FROM accounts`)
	if err := f.QueryEach(t.Context(), func(*sql.Rows) error { return stop }, all); err == nil || err.Error() != stop.Error() {
		t.Errorf("an error of the caller: got %v, want %v", err, stop)
	}
	if got := all.String(); got != "read all: SELECT id FROM accounts" {
		t.Errorf("got %q", got)
	}
}
