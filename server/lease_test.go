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
	"github.com/vedette-io/vedette/server/store/lease"
	"github.com/vedette-io/vedette/test/databases"
)

func isHealthy(code int, _ string) bool { return code == http.StatusOK }

func awaitEnd(t *testing.T, what string, done <-chan error) error {
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
	first, _ := startServer(t, config(url))
	awaitHealth(t, first, isHealthy)
	other := config(url)
	other.ID = "s2"
	_, done := startServer(t, other)
	err := awaitEnd(t, "the second server", done)
	if vedette.KindOf(err) != vedette.Conflict || !strings.Contains(err.Error(), "used by another server, which does not share it: s1") {
		t.Errorf("second server: got %v, want a conflict that names s1", err)
	}
	awaitHealth(t, first, isHealthy)
}

// TestServerEndsWhenLeaseIsLost takes the lease away, as another server does if this one was frozen
// for too long.
func TestServerEndsWhenLeaseIsLost(t *testing.T) {
	url := databases.PostgreSQL(t)
	s, done := startServer(t, config(url))
	awaitHealth(t, s, isHealthy)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `UPDATE lease SET server = 'thief', token = 'another'`); err != nil {
		t.Fatal(err)
	}
	if err := awaitEnd(t, "the server", done); !errors.Is(err, lease.ErrLost) || !strings.Contains(err.Error(), "thief") {
		t.Errorf("got %v, want ErrLost that names the thief", err)
	}
}
