package server

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// TestNameChangesItsClusterByDecision lets two clusters want one name, with the rules, the registry and a database
// together.
func TestNameChangesItsClusterByDecision(t *testing.T) {
	st, err := store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "vedette.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	log := slog.New(slog.DiscardHandler)
	rules := accounts.New(accounts.Config{}, st, log)
	admin := accountAdmin{assignments: assigner.New("s1", assignment.Config{}, st, rules, log), accounts: rules}
	join := func(id vedette.AgentID, uid string) (register func()) {
		m := admin.assignments.Join(assignment.Agent{ID: id}, func(assignment.Assignment) {})
		return func() {
			t.Helper()
			if err := m.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: uid}}); err != nil {
				t.Error(err)
			}
		}
	}
	expectCacher := func(want vedette.AgentID) {
		t.Helper()
		var got vedette.AgentID
		if m, _ := admin.assignments.Cacher("prod"); m != nil {
			got = m.ID
		}
		row, _ := st.Account(t.Context(), "prod") // the row is empty if there is none
		if got != want || row.Holder != want {
			t.Errorf("got the cacher %q and the stored one %q, want %q", got, row.Holder, want)
		}
	}
	registerOld, registerNew := join("old", "u1"), join("new", "u2")
	registerOld()
	registerNew()
	expectCacher("old")
	if err := admin.Release(t.Context(), "prod"); vedette.KindOf(err) != vedette.Conflict {
		t.Errorf("release of an account in use: got %v", err)
	}
	if cluster, err := admin.Accept(t.Context(), "prod", ""); err != nil || cluster.UID != "u2" {
		t.Fatalf("got %v, %v", cluster, err)
	}
	expectCacher("")
	registerOld()
	expectCacher("")
	registerNew()
	expectCacher("new")
	if agents, err := admin.Remove(t.Context(), "prod"); err != nil || len(agents) != 1 {
		t.Errorf("got %v, %v", agents, err)
	}
	expectCacher("")
	registerOld() // the name is free
	expectCacher("old")
}
