package store_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/server/store/storetest/suite"
)

func TestSQLite(t *testing.T) {
	suite.Run(t, func(t *testing.T) *store.Store { return storetest.Open(t, sqliteURL(t)) })
}

func sqliteURL(t *testing.T) string {
	return "sqlite:" + filepath.Join(t.TempDir(), "vedette.db")
}

func TestSQLiteFilePermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "here", "100%?.db")
	s := storetest.Open(t, "sqlite:"+path)
	if _, err := s.Register(t.Context(), vedette.Account{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) < 3 {
		t.Fatalf("got files %v, %v, want at least 3", files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v, %v, want 0600", f.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: got mode %v, %v, want 0700", info.Mode(), err)
	}
}

func TestSQLiteRejectsSecondProcess(t *testing.T) {
	url := sqliteURL(t)
	first := storetest.Open(t, url)
	_, err := store.Open(t.Context(), sqldb.Config{URL: url})
	if vedette.KindOf(err) != vedette.Conflict || !strings.Contains(err.Error(), "another process uses the database file") {
		t.Errorf("second process: got %v, want a conflict", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	storetest.Open(t, url)
}

func TestSQLiteKeepsDataAcrossOpens(t *testing.T) {
	url := sqliteURL(t)
	first := storetest.Open(t, url)
	if _, err := first.Register(t.Context(), vedette.Account{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if accounts, err := storetest.Open(t, url).Accounts(t.Context()); err != nil || len(accounts) != 1 {
		t.Errorf("got accounts %v, %v, want 1", accounts, err)
	}
}

func TestNonDatabaseFileIsInvalid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("this is not a database\n", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + path}); vedette.KindOf(err) != vedette.Invalid {
		t.Errorf("got %v, want an error of kind %s", err, vedette.Invalid)
	}
}

func TestNewerSchemaIsRejected(t *testing.T) {
	url := sqliteURL(t)
	if err := storetest.Open(t, url).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", strings.TrimPrefix(url, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `INSERT INTO schema_version (version_id, is_applied) VALUES (4711, 1)`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = store.Open(t.Context(), sqldb.Config{URL: url})
	if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "4711") || !strings.Contains(err.Error(), "knows versions up to ") {
		t.Errorf("got %v, want an error with both versions", err)
	}
}

func TestInvalidURLs(t *testing.T) {
	for _, url := range []string{"", "vedette.db", "oracle://u:hidden@h/d", "sqlite:", "sqlite::memory:", "postgres://u:hidden@h:port/d", "postgres://u:hid%zzden@h/d",
		"mysql://u:hidden@h:port/d", "mysql://u:hid%zzden@h/d", "mysql://u:hidden@h/d?timeout=soon"} {
		s, err := store.Open(t.Context(), sqldb.Config{URL: url})
		if s != nil || vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%q: got %v, want an error of kind %s", url, err, vedette.Invalid)
		}
		if err != nil && strings.Contains(err.Error(), "hid") {
			t.Errorf("got an error with the password: %v", err)
		}
	}
}
