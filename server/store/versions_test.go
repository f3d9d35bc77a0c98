package store

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// TestUncertainEffectIsPublishedAgain checks that a transaction whose outcome is not known changes
// the versions at once, and again when it has certainly ended.
func TestUncertainEffectIsPublishedAgain(t *testing.T) {
	for name, end := range map[string]func(s *Store){
		"by the account's next transaction": func(s *Store) { s.versions.settle("prod") },
		"by time":                           func(*Store) { time.Sleep(settleTime) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Store{}
				read := func() [3]uint64 {
					return [3]uint64{s.ApplicationVersion("shop"), s.NamespaceVersion("prod", "n"), s.AccountsVersion()}
				}
				e := accountEffect("prod", false)
				e.addObject("shop", "n")
				e.clusters = true
				before := read()
				s.versions.publishUncertain(e)
				first := read()
				expectAllChanged(t, "at once", before, first)
				changed, mark := s.ChangedAccounts(0)
				if !slices.Equal(changed, []vedette.AccountName{"prod"}) {
					t.Errorf("at once: got the changed accounts %v, want prod", changed)
				}
				if len(s.versions.inventory.takeStale()) != 1 {
					t.Error("at once: the account's clusters are not stale")
				}
				s.versions.settle("other")
				time.Sleep(settleTime - time.Second)
				if read() != first {
					t.Error("while the transaction may go on: got other versions, want the same")
				}
				end(s)
				last := read()
				expectAllChanged(t, "in the end", first, last)
				if changed, _ := s.ChangedAccounts(mark); !slices.Equal(changed, []vedette.AccountName{"prod"}) {
					t.Errorf("in the end: got the changed accounts %v, want prod", changed)
				}
				if len(s.versions.inventory.takeStale()) != 1 {
					t.Error("in the end: the account's clusters are not stale")
				}
				time.Sleep(2 * settleTime)
				if read() != last {
					t.Error("afterwards: got other versions, want the same")
				}
			})
		})
	}
}

func expectAllChanged(t *testing.T, when string, before, after [3]uint64) {
	t.Helper()
	for i, what := range []string{"application", "namespace", "accounts"} {
		if before[i] == after[i] {
			t.Errorf("%s: the version of the %s has not changed", when, what)
		}
	}
}

func TestUncertainEffectsAreMerged(t *testing.T) {
	var v versions
	for i := range 1000 {
		e := &effect{account: "prod"}
		e.addObject(string(rune('a'+i)), "n")
		v.publishUncertain(e)
	}
	if len(v.uncertain) != 1 {
		t.Errorf("got %d effects of one account, want 1", len(v.uncertain))
	}
	for _, account := range []vedette.AccountName{"prod", "prod"} {
		v.settle(account)
	}
	if v.pending.Load() {
		t.Error("got pending effects after the account has settled, want none")
	}
}
