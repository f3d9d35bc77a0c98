package sqldb_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// known is the version of the schema of this release.
const known = 21

// laterRelease returns the migrations of a release after this one: to the next version, which this one can use, and to more.
func laterRelease(versions int) fstest.MapFS {
	files := fstest.MapFS{}
	for i, migration := range []struct {
		compatibleFrom int
		statement      string
	}{
		{known, "ALTER TABLE accounts ADD COLUMN later INT NOT NULL DEFAULT 0"},
		{known + 1, "CREATE TABLE later (id INT NOT NULL PRIMARY KEY)"},
		{known + 3, "ALTER TABLE later ADD COLUMN later INT NOT NULL DEFAULT 0"},
	}[:versions] {
		text := fmt.Sprintf("-- +goose Up\n-- Compatible from: %d\n%s;\n", migration.compatibleFrom, migration.statement)
		files[fmt.Sprintf("%05d_later.sql", known+1+i)] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// TestRollbackToServersThatCanUseTheSchema opens databases that later releases have migrated.
func TestRollbackToServersThatCanUseTheSchema(t *testing.T) {
	onOldSchemas(t, 13, func(t *testing.T, url string, old *sql.DB) {
		open := func(later int, log *slog.Logger) (*store.Store, error) {
			t.Helper()
			return store.Open(t.Context(), sqldb.Config{URL: url, Log: log}.WithLater(laterRelease(later)))
		}
		put := func(later int, log *slog.Logger, name string, wantObjects int) {
			t.Helper()
			s, err := open(later, log)
			if err != nil {
				t.Fatal(err)
			}
			if later > 0 && wantObjects == 1 {
				storetest.Register(t, s, "prod")
			}
			w := storetest.Acquire(t, s, "prod")
			pod := vedette.Kind{Name: "Pod"}
			w.Declare(storetest.FeedOf(pod))
			w.Put(storetest.Object(pod, "shop", name, "7"))
			if rows := storetest.QueryAll(t, s, read.Query{}); len(rows) != wantObjects {
				t.Errorf("got objects %q, want %d", storetest.RowNames(rows), wantObjects)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		wantRefused := func(later, stored, known int) {
			t.Helper()
			s, err := open(later, nil)
			want := fmt.Sprintf("the database has schema version %d and this server knows versions up to %d", stored, known)
			if s != nil || vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "restore the backup") {
				t.Errorf("got %v, want an error with %q and what to do", err, want)
			}
			if _, err := sqldb.Probe(t.Context(), sqldb.Config{URL: url}.WithLater(laterRelease(later))); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("check: got %v, want an error with %q", err, want)
			}
		}
		put(1, nil, "by-the-later-release", 1) // over two versions
		var log bytes.Buffer
		put(0, slog.New(slog.NewTextHandler(&log, nil)), "after-the-rollback", 2)
		if !strings.Contains(log.String(), "a newer server has migrated the database") || !strings.Contains(log.String(), fmt.Sprintf("schema=%d known=%d", known+1, known)) {
			t.Errorf("got log %q, want that the schema is newer", log.String())
		}
		if text, err := sqldb.Probe(t.Context(), sqldb.Config{URL: url}); err != nil || !strings.Contains(text, fmt.Sprintf("schema version %d, by a newer server; this one knows %d and can use it", known+1, known)) {
			t.Errorf("check: got %q, %v", text, err)
		}
		put(1, nil, "after-the-upgrade", 3)
		put(2, nil, "by-the-release-after-that", 4)
		wantRefused(0, known+2, known) // two versions back: the second migration needs servers that know the first
		put(1, nil, "one-version-back", 5)
		put(3, nil, "by-a-release-that-breaks", 6)
		wantRefused(0, known+3, known)
		wantRefused(1, known+3, known+1)
		put(3, nil, "again", 7)
	})
}

// TestSchemaOfUnknownServersIsRefused opens databases whose newer schema does not say who can use it.
func TestSchemaOfUnknownServersIsRefused(t *testing.T) {
	onOldSchemas(t, 15, func(t *testing.T, url string, old *sql.DB) {
		open := func(cfg sqldb.Config) error {
			s, err := store.Open(t.Context(), cfg)
			if err != nil {
				return err
			}
			return s.Close()
		}
		older := sqldb.Config{URL: url}
		if err := open(older.WithLater(laterRelease(2))); err != nil {
			t.Fatal(err)
		}
		mustExec(t, old, fmt.Sprintf("UPDATE schema_compatibility SET compatible_from = %d", known))
		if err := open(older); err != nil {
			t.Errorf("both migrations are compatible: got %v", err)
		}
		mustExec(t, old, fmt.Sprintf("DELETE FROM schema_compatibility WHERE version = %d", known+1))
		if err := open(older); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("a migration is not recorded: got %v, want an error of kind %s", err, vedette.Invalid)
		}
	})
}
