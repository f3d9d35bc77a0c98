package sqldb_test

import (
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/test/databases"
)

// TestHistoryOfADatabase opens databases as a user without rights outside of them.
func TestHistoryOfADatabase(t *testing.T) {
	for name, tt := range map[string]struct {
		url    func(t *testing.T) string
		create []string // statements
		user   *url.Userinfo
	}{
		"PostgreSQL": {func(t *testing.T) string { return databases.StartPostgreSQL(t, databases.Options{}).URL },
			[]string{"CREATE ROLE plain LOGIN", "GRANT CREATE ON SCHEMA public TO plain"}, url.User("plain")},
		"MariaDB": {func(t *testing.T) string { return databases.StartMariaDB(t, databases.Options{}).URL },
			[]string{"CREATE USER plain@'127.0.0.1' IDENTIFIED BY 'plain'", "GRANT ALL ON vedette.* TO plain@'127.0.0.1'"}, url.UserPassword("plain", "plain")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(tt.url(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, statement := range tt.create {
				if err := databases.Exec(u.String(), statement); err != nil {
					t.Fatal(err)
				}
			}
			u.User = tt.user
			s := openStore(t, u.String())
			first := s.HistoryID()
			if first == "" {
				t.Fatal("the store does not know which server it uses")
			}
			if again := openStore(t, u.String()).HistoryID(); again != first {
				t.Errorf("got %q and %q, want the same", first, again)
			}
			testChangedHistory(t, s)
		})
	}
}

// testChangedHistory lets a connection show another history: nothing is written from then on.
func testChangedHistory(t *testing.T, s *store.Store) {
	write := func() error {
		return s.Write(t.Context(), func(context.Context, *sqldb.Tx) error { return nil })
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	if err := s.ObserveHistory(""); err != nil {
		t.Errorf("a replica: got %v, want no error", err)
	}
	for _, id := range []string{"another", s.HistoryID()} {
		if err := s.ObserveHistory(id); !errors.Is(err, sqldb.ErrHistory) || vedette.KindOf(err) != vedette.Unavailable {
			t.Errorf("%s: got %v, want %v of kind %s", id, err, sqldb.ErrHistory, vedette.Unavailable)
		}
	}
	if err := write(); !errors.Is(err, sqldb.ErrHistory) {
		t.Errorf("writing: got %v, want %v", err, sqldb.ErrHistory)
	}
	if _, err := s.ExecWrite(t.Context(), sqldb.Named("a statement", "DELETE FROM freshness WHERE id = ?"), "no account"); !errors.Is(err, sqldb.ErrHistory) {
		t.Errorf("one statement: got %v, want %v", err, sqldb.ErrHistory)
	}
}
