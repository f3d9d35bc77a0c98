package server

import (
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/test/databases"
)

func up(code int, _ string) bool { return code == http.StatusOK }

func ended(t *testing.T, what string, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatalf("%s did not end", what)
		return nil
	}
}

// TestSecondServerRefusesToStart runs two servers on one database.
func TestSecondServerRefusesToStart(t *testing.T) {
	url := databases.PostgreSQL(t)
	first, _ := serve(t, config(url))
	awaitHealth(t, first, up)
	other := config(url)
	other.ID = "s2"
	_, done := serve(t, other)
	err := ended(t, "the second server", done)
	if vedette.KindOf(err) != vedette.Conflict || !strings.Contains(err.Error(), "used by another server: s1") {
		t.Errorf("the second server ended with %v", err)
	}
	awaitHealth(t, first, up)
}

// TestServerThatLostItsDatabase takes the lease away, as another server does after
// the first has been frozen for a while.
func TestServerThatLostItsDatabase(t *testing.T) {
	url := databases.PostgreSQL(t)
	s, done := serve(t, config(url))
	awaitHealth(t, s, up)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `UPDATE lease SET server = 'thief', token = 'another'`); err != nil {
		t.Fatal(err)
	}
	if err := ended(t, "the server", done); !errors.Is(err, store.ErrLeaseLost) || !strings.Contains(err.Error(), "thief") {
		t.Errorf("it ended with %v", err)
	}
}
