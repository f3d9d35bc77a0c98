package versions

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

const settleTime = 40 * time.Second

// TestUncertainEffectIsPublishedAgain checks that a transaction whose outcome is not known changes
// the versions at once, and again when it has certainly ended.
func TestUncertainEffectIsPublishedAgain(t *testing.T) {
	for name, end := range map[string]func(s *Versions){
		"by the account's next transaction": func(s *Versions) { s.Settle("prod") },
		"by time":                           func(*Versions) { time.Sleep(settleTime) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(settleTime)
				read := func() [3]uint64 {
					return [3]uint64{s.ApplicationVersion("shop"), s.NamespaceVersion("prod", "n"), s.AccountsVersion()}
				}
				e := AccountEffect("prod", false)
				e.AddObject("shop", 0, "n", "")
				e.Clusters = true
				before, start := read(), s.ChangeMark()
				s.PublishUncertain(e)
				first := read()
				expectAllChanged(t, "at once", before, first)
				if now, ok := s.Changes.Since(start, func(ChangedObject) {}); !ok || now == start {
					t.Error("at once: the log of changes has no object")
				}
				start = s.ChangeMark()
				changed := s.ChangedAccounts(0)
				if !slices.Equal(changed.Names, []vedette.AccountName{"prod"}) {
					t.Errorf("at once: got the changed accounts %v, want prod", changed.Names)
				}
				if stale, _ := s.StaleClusters.Take(); len(stale) != 1 {
					t.Error("at once: the account's clusters are not stale")
				}
				s.Settle("other")
				time.Sleep(settleTime - time.Second)
				if read() != first {
					t.Error("while the transaction may go on: got other versions, want the same")
				}
				end(s)
				last := read()
				expectAllChanged(t, "in the end", first, last)
				if _, ok := s.Changes.Since(start, func(ChangedObject) {}); ok {
					t.Error("in the end: the log of changes is complete, though it cannot name the objects")
				}
				if changed := s.ChangedAccounts(changed.Mark).Names; !slices.Equal(changed, []vedette.AccountName{"prod"}) {
					t.Errorf("in the end: got the changed accounts %v, want prod", changed)
				}
				if stale, _ := s.StaleClusters.Take(); len(stale) != 1 {
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
	v := New(settleTime)
	for i := range 1000 {
		e := &Effect{Account: "prod"}
		e.AddObject(string(rune('a'+i)), 0, "n", "")
		v.PublishUncertain(e)
	}
	if len(v.uncertain) != 1 {
		t.Errorf("got %d effects of one account, want 1", len(v.uncertain))
	}
	for _, account := range []vedette.AccountName{"prod", "prod"} {
		v.Settle(account)
	}
	if v.pending.Load() {
		t.Error("got pending effects after the account has settled, want none")
	}
}

// TestAccountsChangeBeforeObjects checks that nobody sees the objects of an account change before
// the accounts: it would read the objects with the accounts of before, and keep them as new.
func TestAccountsChangeBeforeObjects(t *testing.T) {
	s := New(settleTime)
	const changes = 300
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range changes {
			s.publish(AccountEffect("prod", true))
		}
	}()
	for objects := uint64(0); objects < changes; {
		objects = s.ApplicationVersion("shop")
		if accounts := s.AccountsVersion(); accounts < objects {
			t.Errorf("got version %d of the accounts after version %d of their objects", accounts, objects)
			break
		}
	}
	<-done
}
