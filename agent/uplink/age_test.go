package uplink

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// TestAgesInHeartbeats checks which accounts heartbeats list, and the age that the others share.
func TestAgesInHeartbeats(t *testing.T) {
	now := time.Now()
	l := ageLister{commonAge: 4 * time.Second}
	account := func(name string, term vedette.Term, live, all float64) AccountFreshness {
		a := AccountFreshness{Account: vedette.AccountName(name), Term: term}
		if live >= 0 {
			a.Live = now.Add(-time.Duration(live * float64(time.Second)))
		}
		if all >= 0 {
			a.All = now.Add(-time.Duration(all * float64(time.Second)))
		}
		return a
	}
	for _, step := range []struct {
		name     string
		accounts []AccountFreshness
		want     string
	}{
		{"no account", nil, "age 100:"},
		{"new accounts are listed once", []AccountFreshness{account("a", 1, 2, 2), account("b", 1, 3, 3)}, "age 3000: a/1 2000 2000, b/1 3000 3000"},
		{"then they share the age", []AccountFreshness{account("a", 1, 2, 2), account("b", 1, 1, 1.5)}, "age 2000:"},
		{"one that is older is listed", []AccountFreshness{account("a", 1, 9, 9), account("b", 1, 1, 1)}, "age 1000: a/1 9000 9000"},
		{"one with a feed that fails", []AccountFreshness{account("a", 1, 1, 60), account("b", 1, 1, 1)}, "age 1000: a/1 1000 60000"},
		{"one about which nothing is known", []AccountFreshness{account("a", 1, -1, -1), account("b", 1, 0, 0)}, "age 100: a/1 ? ?"},
		{"an account in another term", []AccountFreshness{account("a", 2, 1, 1), account("b", 1, 0, 0)}, "age 1000: a/2 1000 1000"},
		{"an account that is gone", []AccountFreshness{account("b", 1, 0, 0)}, "age 100:"},
		{"and is back", []AccountFreshness{account("a", 2, 1, 1), account("b", 1, 0, 0)}, "age 1000: a/2 1000 1000"},
		{"parts of a millisecond count as one", []AccountFreshness{account("b", 1, 1.0001, 1)}, "age 1001:"},
	} {
		h := &wire.AgentHeartbeat{AgeMillis: proto.Int64(100)}
		l.addTo(h, step.accounts, now)
		var ages []string
		text := func(millis *int64) string {
			if millis == nil {
				return "?"
			}
			return fmt.Sprint(*millis)
		}
		for _, a := range h.GetAccounts() {
			ages = append(ages, fmt.Sprintf(" %s/%d %s %s", a.GetAccount(), a.GetTerm(), text(a.LiveMillis), text(a.AllMillis)))
		}
		if got := fmt.Sprintf("age %d:%s", h.GetAgeMillis(), strings.Join(ages, ",")); got != step.want || !h.GetListsAccounts() {
			t.Errorf("%s: got %s, want %s", step.name, got, step.want)
		}
	}
}
