package convergence

import (
	"context"
	"testing"
	"time"
)

// TestOutageLongerThanGrace stops everything for longer than the grace period of accounts, as for a
// move, and starts the server first. No agent could register the accounts meanwhile, so nothing may
// be removed.
func TestOutageLongerThanGrace(t *testing.T) {
	s := singleAgent
	s.grace = "8s"
	runOn(t, anyDatabase(), s, func(t *testing.T, w *world) {
		id := w.count(t.Context(), `SELECT id FROM accounts WHERE name = 'account-0'`)
		objects := w.count(t.Context(), `SELECT COUNT(*) FROM objects`)
		w.agents[0].Stop()
		w.server.Stop()
		sleep(t.Context(), 10*time.Second)
		w.server.Start()
		w.awaitServing()
		sleep(t.Context(), 3*time.Second)
		if n := w.count(t.Context(), `SELECT COUNT(*) FROM objects`); n != objects {
			t.Errorf("got %d objects before the outage and %d after it", objects, n)
		}
		w.agents[0].Start()
		w.awaitConvergence()
		if now := w.count(t.Context(), `SELECT id FROM accounts WHERE name = 'account-0'`); now != id {
			t.Errorf("the account was created again: got row %d, want %d", now, id)
		}
	})
}

// awaitServing waits until the server answers for its accounts.
func (w *world) awaitServing() {
	w.t.Helper()
	var list struct{ Items []struct{ Name string } }
	if !w.eventually(convergenceTimeout, func(ctx context.Context) bool {
		return getJSON(ctx, w.rest+"/vedette/v1/accounts", &list) == nil && len(list.Items) > 0
	}) {
		w.t.Fatal("the server does not serve its accounts")
	}
}
