package assignment

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// expectChanges checks which changes of cachers were counted, without those that are zero.
func (w fixture) expectChanges(step string, want map[ChangeReason]CacherChanges) {
	w.t.Helper()
	synctest.Wait()
	got := w.CacherChanges()
	if len(got) != len(changeReasons) {
		w.t.Errorf("%s: got %d reasons, want all %d", step, len(got), len(changeReasons))
	}
	maps.DeleteFunc(got, func(_ ChangeReason, n CacherChanges) bool { return n == CacherChanges{} })
	if !maps.Equal(got, want) {
		w.t.Errorf("%s: got %v, want %v", step, got, want)
	}
}

// TestChangesAreCountedByReason gives two accounts other cachers, for one reason after the other.
func TestChangesAreCountedByReason(t *testing.T) {
	withBalancer(t, func(t *testing.T, w *balanceFixture) {
		w.addAccounts(1000, 1000)
		want := map[ChangeReason]CacherChanges{}
		expect := func(step string, reason ChangeReason, done int64) {
			t.Helper()
			want[reason] = CacherChanges{Done: want[reason].Done + done}
			w.expectChanges(step, want)
		}
		first := w.speak("a1")
		expect("the first agent", Joined, 2)
		second := w.speak("a2")
		expect("a standby", Joined, 0)
		time.Sleep(BalanceConfig{}.withDefaults().Tenure + 10*time.Second)
		expect("the accounts are shared", Balancing, 1)
		w.registerAgain(first.Member, vedette.Properties{})
		expect("a cacher registers again", Joined, 0)
		second.frozen.Store(true)
		time.Sleep(3 * time.Second)
		expect("an agent is frozen", FellSilent, 1)
		second.wake()
		time.Sleep(time.Second)
		_, term := w.Cacher("account-0000")
		first.Revoke(t.Context(), "account-0000", term, vedette.Errorf(vedette.Invalid, "no"))
		expect("the store rejects an agent's writes", Rejected, 1)
		first.Leave(t.Context())
		expect("an agent leaves", Left, 1)
		second.Leave(t.Context())
		expect("the last agent leaves", Left, 0)
		w.speak("a3")
		expect("an agent comes", Joined, 2)
	})
}

// TestFailedChangesAreCounted lets the store not answer for a while.
func TestFailedChangesAreCounted(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		first, _ := w.connect("a1")
		w.failTake = func() error { return vedette.Errorf(vedette.Unavailable, "no answer") }
		if err := first.Register(t.Context(), prodAccount(nil)); err == nil {
			t.Error("got no error")
		}
		w.expectChanges("no answer", map[ChangeReason]CacherChanges{Joined: {Failed: 1}})
		w.set(func() { w.failTake = nil })
		time.Sleep(2 * time.Second)
		w.expectChanges("the store answers", map[ChangeReason]CacherChanges{Joined: {Done: 1, Failed: 1}})
	})
}
