package assigner

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// TestAccountsAreNoFresherThanKnown checks up to when accounts count as complete, of an agent that knows it for each.
func TestAccountsAreNoFresherThanKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
		term := vedette.Term(5)
		m := &Member{stalls: map[vedette.AccountName]stall{}}
		expect := func(name string, live, all int) {
			t.Helper()
			gotLive, gotAll := m.accountFreshnessLocked("prod", term)
			for _, tt := range []struct {
				what string
				got  time.Time
				want int
			}{{"live feeds", gotLive, live}, {"all feeds", gotAll, all}} {
				if want := at(tt.want); tt.want < 0 && !tt.got.IsZero() || tt.want >= 0 && !tt.got.Equal(want) {
					t.Errorf("%s: %s: got %v, want %d s", name, tt.what, tt.got.Sub(start), tt.want)
				}
			}
		}
		listed := func(term vedette.Term, live, all int) map[vedette.AccountName]vedette.AccountAge {
			age := vedette.AccountAge{Term: term}
			if live >= 0 {
				age.Live = at(live)
			}
			if all >= 0 {
				age.All = at(all)
			}
			return map[vedette.AccountName]vedette.AccountAge{"prod": age}
		}
		time.Sleep(100 * time.Second)
		m.SetFreshness(at(10))
		expect("an agent that does not know it", 10, 10)
		m.SetAccountFreshness(at(20), nil)
		expect("an account that was not listed yet", -1, -1)
		m.SetAccountFreshness(at(30), listed(4, 30, 30))
		expect("an age of an earlier term", -1, -1)
		m.SetAccountFreshness(at(40), listed(5, -1, 12))
		expect("its live feeds are unknown", -1, 12)
		m.SetAccountFreshness(at(50), listed(5, 45, 12))
		expect("listed with ages", 45, 12)
		m.SetAccountFreshness(at(60), listed(5, 70, 70))
		expect("not fresher than the agent", 60, 60)
		m.SetAccountFreshness(at(70), nil)
		expect("not listed any more: as fresh as the agent", 70, 70)
		m.SetAccountFreshness(at(74), listed(5, 71, 71))
		m.SetAccountFreshness(at(73), nil)
		expect("not listed any more, in a heartbeat that is older than the one before", 73, 73)
		m.SetAccountFreshness(at(72), nil)
		expect("another account is older", 73, 73)
		term = 6
		expect("assigned anew", -1, -1)
		m.SetAccountFreshness(at(80), nil)
		expect("what was said in the last term does not count", -1, -1)
		m.SetAccountFreshness(at(90), listed(6, 88, 88))
		m.SetAccountFreshness(at(95), listed(6, 88, 88))
		expect("an API server that is silent", 88, 88)
		m.SetAccountFreshness(at(999), listed(6, 999, 999))
		expect("a lie about the future", 100, 100)
		m.SetAccountFreshness(at(999), nil)
		expect("a lie about the future, of all accounts", 100, 100)
	})
}
