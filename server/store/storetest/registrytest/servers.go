package registrytest

import (
	"errors"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// Servers are tests of accounts that several servers share.
var Servers = map[string]func(*testing.T, *store.Store){
	"an account is acquired after the term that was read": func(t *testing.T, s *store.Store) {
		storetest.Register(t, s, "prod")
		var term vedette.Term
		for _, server := range []vedette.ServerID{"s1", "s2"} {
			row, err := s.Account(t.Context(), "prod")
			if err != nil {
				t.Fatal(err)
			}
			acquired, err := s.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "a", Server: server, After: &row.Term})
			if err != nil || acquired != row.Term+1 {
				t.Fatalf("got term %d, %v, want the one after %d", acquired, err, row.Term)
			}
			term = acquired
			if _, err := s.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "b", Server: "late", After: &row.Term}); !errors.Is(err, registry.ErrOvertaken) {
				t.Errorf("acquired after term %d, which has ended: got %v, want %v", row.Term, err, registry.ErrOvertaken)
			}
		}
		if row := onlyAccount(t, s); row.Holder != "a" || row.Server != "s2" || row.Term != term {
			t.Errorf("got %+v, want agent a at s2", row)
		}
	},
	"an account is released by the server that has it only": func(t *testing.T, s *store.Store) {
		storetest.Register(t, s, "prod")
		term, err := s.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "a", Server: "s1"})
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			server vedette.ServerID
			term   vedette.Term
			holder vedette.AgentID
		}{{"s2", term, "a"}, {"s1", term - 1, "a"}, {"s1", term, ""}} {
			if err := s.Release(t.Context(), "prod", tt.term, tt.server); err != nil {
				t.Fatal(err)
			}
			if row := onlyAccount(t, s); row.Holder != tt.holder {
				t.Errorf("released by %s in term %d: got the cacher %q, want %q", tt.server, tt.term, row.Holder, tt.holder)
			}
		}
	},
	"the accounts of a server are released, and of those that have no row": func(t *testing.T, s *store.Store) {
		terms := map[vedette.AccountName]vedette.Term{}
		for name, server := range map[vedette.AccountName]vedette.ServerID{"a": "s1", "b": "s1", "c": "s2", "free": ""} {
			storetest.Register(t, s, name)
			if server == "" {
				continue
			}
			term, err := s.Acquire(t.Context(), name, registry.CacherClaim{Agent: "agent", Server: server})
			if err != nil {
				t.Fatal(err)
			}
			terms[name] = term
		}
		if err := s.ReleaseServer(t.Context(), "s1"); err != nil {
			t.Fatal(err)
		}
		want := func(names ...vedette.AccountName) {
			t.Helper()
			rows, err := s.Unassigned(t.Context(), []vedette.AccountName{"a", "b", "c", "free", "never"})
			if err != nil {
				t.Fatal(err)
			}
			var got []vedette.AccountName
			for _, row := range rows {
				got = append(got, row.Account)
				if old, had := terms[row.Account]; row.Holder != "" || row.Server != "" || had && row.Term <= old {
					t.Errorf("got %+v, want a later term than %d and nobody", row, old)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, names) {
				t.Errorf("nobody has %q, want %q", got, names)
			}
		}
		want("a", "b", "free")
		rows, err := s.Assigned(t.Context(), []vedette.AccountName{"c", "never"})
		if err != nil || len(rows) != 1 || rows[0] != (registry.Assigned{Account: "c", Term: terms["c"], Holder: "agent", Server: "s2"}) {
			t.Errorf("got %+v, %v, want c at s2", rows, err)
		}
		if rows, err := s.Assigned(t.Context(), nil); len(rows) > 0 || err != nil {
			t.Errorf("no account: got %+v, %v", rows, err)
		}
		for _, released := range []int64{1, 0} { // no server has a row
			if n, err := s.ReleaseEnded(t.Context()); n != released || err != nil {
				t.Errorf("got %d, %v, want %d released", n, err, released)
			}
		}
		want("a", "b", "c", "free")
	},
}
