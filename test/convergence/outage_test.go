package convergence

import (
	"context"
	"testing"
	"time"
)

// TestOutageLongerThanGrace stops everything for longer than accounts are kept
// without agents, as for a move, and starts the server first: the accounts could not
// be spoken for meanwhile, so nothing of them may be missing when it is back.
func TestOutageLongerThanGrace(t *testing.T) {
	t.Parallel() // it waits most of the time
	s := singleAgent
	s.grace = "8s"
	runOn(t, anyDatabase(), s, func(t *testing.T, w *world) {
		id := w.count(t.Context(), `SELECT id FROM accounts WHERE name = 'account-0'`)
		objects := w.count(t.Context(), `SELECT COUNT(*) FROM objects`)
		w.agents[0].stop()
		w.server.stop()
		sleep(t.Context(), 10*time.Second)
		w.server.start()
		w.awaitServing()
		sleep(t.Context(), 3*time.Second)
		if n := w.count(t.Context(), `SELECT COUNT(*) FROM objects`); n != objects {
			t.Errorf("%d objects were stored before the outage, and %d are after it", objects, n)
		}
		w.agents[0].start()
		w.awaitConvergence()
		if now := w.count(t.Context(), `SELECT id FROM accounts WHERE name = 'account-0'`); now != id {
			t.Errorf("the account was made anew: its row is %d and was %d", now, id)
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
