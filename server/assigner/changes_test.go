package assigner

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
)

const numReasons = 7

// expectChanges checks which changes of cachers were counted, without those that are zero.
func (w fixture) expectChanges(step string, want map[assignment.ChangeReason]assignment.CacherChanges) {
	w.t.Helper()
	synctest.Wait()
	got := w.CacherChanges()
	if len(got) != numReasons {
		w.t.Errorf("%s: got %d reasons, want all %d", step, len(got), numReasons)
	}
	maps.DeleteFunc(got, func(_ assignment.ChangeReason, n assignment.CacherChanges) bool {
		return n == assignment.CacherChanges{}
	})
	if !maps.Equal(got, want) {
		w.t.Errorf("%s: got %v, want %v", step, got, want)
	}
}

// TestChangesAreCountedByReason gives two accounts other cachers, for one reason after the other.
func TestChangesAreCountedByReason(t *testing.T) {
	withBalancer(t, func(t *testing.T, w *balanceFixture) {
		w.addAccounts(1000, 1000)
		want := map[assignment.ChangeReason]assignment.CacherChanges{}
		expect := func(step string, reason assignment.ChangeReason, done int64) {
			t.Helper()
			want[reason] = assignment.CacherChanges{Done: want[reason].Done + done}
			w.expectChanges(step, want)
		}
		first := w.speak("a1")
		expect("the first agent", assignment.ReasonJoined, 2)
		second := w.speak("a2")
		expect("a standby", assignment.ReasonJoined, 0)
		time.Sleep(balanceConfig.Tenure + 10*time.Second)
		expect("the accounts are shared", assignment.ReasonBalance, 1)
		w.registerAgain(first.Member, vedette.Properties{})
		expect("a cacher registers again", assignment.ReasonJoined, 0)
		second.frozen.Store(true)
		time.Sleep(3 * time.Second)
		expect("an agent is frozen", assignment.ReasonSilent, 1)
		second.wake()
		time.Sleep(time.Second)
		_, term := w.Cacher("account-0000")
		first.Revoke(t.Context(), "account-0000", term, vedette.Errorf(vedette.Invalid, "no"))
		expect("the store rejects an agent's writes", assignment.ReasonRejected, 1)
		first.Leave(t.Context())
		expect("an agent leaves", assignment.ReasonLeft, 1)
		second.Leave(t.Context())
		expect("the last agent leaves", assignment.ReasonLeft, 0)
		w.speak("a3")
		expect("an agent comes", assignment.ReasonJoined, 2)
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
		w.expectChanges("no answer", map[assignment.ChangeReason]assignment.CacherChanges{assignment.ReasonJoined: {Failed: 1}})
		w.set(func() { w.failTake = nil })
		time.Sleep(2 * time.Second)
		w.expectChanges("the store answers", map[assignment.ChangeReason]assignment.CacherChanges{assignment.ReasonJoined: {Done: 1, Failed: 1}})
	})
}
