package assigner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store/registry"
)

func prodOf(uid string) vedette.Account {
	return vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: uid}}
}

func (w fixture) registerFor(m *Member, uid string) {
	w.t.Helper()
	if err := m.Register(w.t.Context(), prodOf(uid)); err != nil {
		w.t.Error(err)
	}
}

// replaceRow gives the name of an account to another cluster, in a new term.
func (w fixture) replaceRow(_ context.Context, a vedette.Account) error {
	w.memoryStore.mu.Lock()
	defer w.memoryStore.mu.Unlock()
	w.rows[a.Name] = &registry.Account{Account: a, Term: w.rows[a.Name].Term + 10}
	return nil
}

func (w fixture) removeRow(_ context.Context, name vedette.AccountName) error {
	w.memoryStore.mu.Lock()
	defer w.memoryStore.mu.Unlock()
	delete(w.rows, name)
	return nil
}

// TestTransferAcceptsTheOtherCluster accepts another cluster under the name of an account, while agents of both are
// connected.
func TestTransferAcceptsTheOtherCluster(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		former, formerRoles := w.connect("a1")
		standby, standbyRoles := w.connect("a2")
		newcomer, newcomerRoles := w.connect("b1")
		w.registerFor(former, "u1")
		w.registerFor(standby, "u1")
		if _, err := w.Transfer(t.Context(), "prod", "", w.replaceRow); vedette.KindOf(err) != vedette.NotFound {
			t.Errorf("without a conflict: got %v", err)
		}
		w.registerFor(newcomer, "u2")
		if role, _ := newcomer.Role("prod"); role.Conflict == nil || role.Conflict.UID != "u2" || newcomerRoles.last() != assignment.Refused {
			t.Errorf("got %+v, want a conflict with the cluster of the refused agent", role)
		}
		failing := errors.New("no database")
		if _, err := w.Transfer(t.Context(), "prod", "", func(context.Context, vedette.Account) error { return failing }); !errors.Is(err, failing) {
			t.Errorf("got %v", err)
		}
		if m, _ := w.Cacher("prod"); m != former {
			t.Error("a failed transfer has changed the cacher")
		}
		cluster, err := w.Transfer(t.Context(), "prod", "", w.replaceRow)
		if err != nil || cluster.UID != "u2" {
			t.Errorf("got %v, %v", cluster, err)
		}
		if m, _ := w.Cacher("prod"); m != nil || formerRoles.last() != assignment.Refused || standbyRoles.last() != assignment.Refused {
			t.Errorf("the cacher is %v, and the former agents are %s and %s", m, formerRoles.last(), standbyRoles.last())
		}
		w.registerFor(former, "u1") // it tries again
		w.registerFor(newcomer, "u2")
		if m, _ := w.Cacher("prod"); m != newcomer || formerRoles.last() != assignment.Refused {
			t.Errorf("the cacher is %v, and the former agent is %s", m, formerRoles.last())
		}
		if role, _ := newcomer.Role("prod"); role.Conflict != nil {
			t.Errorf("got the conflict %+v of the owner", role.Conflict)
		}
	})
}

// TestTransferChoosesAgent checks that several clusters that want a name are not guessed between.
func TestTransferChoosesAgent(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		for _, a := range []struct {
			id  vedette.AgentID
			uid string
		}{{"a1", "u1"}, {"b1", "u2"}, {"b2", "u2"}, {"c1", "u3"}} {
			m, _ := w.connect(a.id)
			w.registerFor(m, a.uid)
		}
		_, err := w.Transfer(t.Context(), "prod", "", w.replaceRow)
		if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "agent b1 for the cluster with uid u2") || !strings.Contains(err.Error(), "agent c1") {
			t.Errorf("got %v, want the choices", err)
		}
		if _, err := w.Transfer(t.Context(), "prod", "a1", w.replaceRow); vedette.KindOf(err) != vedette.NotFound {
			t.Errorf("the owner's agent: got %v", err)
		}
		if cluster, err := w.Transfer(t.Context(), "prod", "c1", w.replaceRow); err != nil || cluster.UID != "u3" {
			t.Errorf("got %v, %v", cluster, err)
		}
	})
}

// TestVacatedAccountMayRegisterAgain removes an account while its agents are connected. They may register it again.
func TestVacatedAccountMayRegisterAgain(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		first, firstRoles := w.connect("a1")
		second, secondRoles := w.connect("a2")
		w.registerFor(first, "u1")
		w.registerFor(second, "u1")
		agents, err := w.Vacate(t.Context(), "prod", w.removeRow)
		if err != nil || !slices.Equal(agents, []vedette.AgentID{"a1", "a2"}) || firstRoles.last() != assignment.Refused || secondRoles.last() != assignment.Refused {
			t.Errorf("got %v, %v, and the roles %s and %s", agents, err, firstRoles.last(), secondRoles.last())
		}
		w.registerFor(second, "u9") // a new cluster may have the name now
		if m, _ := w.Cacher("prod"); m != second {
			t.Errorf("got the cacher %v, want %s", m, second.ID)
		}
		if agents, err := w.Vacate(t.Context(), "unknown", func(context.Context, vedette.AccountName) error { return registry.ErrNoAccount }); vedette.KindOf(err) != vedette.NotFound || agents != nil {
			t.Errorf("got %v, %v", agents, err)
		}
		for _, h := range w.holders() {
			if h.account == "unknown" {
				t.Error("an invented name takes memory")
			}
		}
	})
}
