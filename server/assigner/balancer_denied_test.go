package assigner

import (
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

// TestDeniedFeedsDoNotKeepAccounts moves an account of which the cluster denies a kind to both agents,
// and one that it denies to the second agent only.
func TestDeniedFeedsDoNotKeepAccounts(t *testing.T) {
	for name, tt := range map[string]struct {
		after []vedette.Kind // what the cluster denies the second agent
		want  vedette.AgentID
	}{
		"the same":              {[]vedette.Kind{{Name: "Secret"}}, "a2"},
		"less":                  {nil, "a2"},
		"more":                  {[]vedette.Kind{{Name: "Secret"}, {Name: "ConfigMap"}}, "a1"},
		"as much, but not that": {[]vedette.Kind{{Name: "ConfigMap"}}, "a1"},
	} {
		t.Run(name, func(t *testing.T) {
			withBalancer(t, func(t *testing.T, w *balanceFixture) {
				w.addAccounts(1000, 1000)
				w.notLive["account-0001"] = true // only the first can move
				w.denied = map[vedette.AccountName][]vedette.Kind{"account-0000": {{Name: "Secret"}}}
				w.join("a1")
				w.join("a2")
				time.Sleep(balanceConfig.Tenure + 2*time.Second)
				if m, _ := w.Cacher("account-0000"); m == nil || m.ID != "a2" {
					t.Fatalf("got cacher %v, want the account moved", m)
				}
				w.set(func() { w.denied["account-0000"] = tt.after })
				time.Sleep(moveTimeout + 2*time.Second)
				if m, _ := w.Cacher("account-0000"); m == nil || m.ID != tt.want {
					t.Errorf("got cacher %v, want %s", m, tt.want)
				}
			})
		})
	}
}
