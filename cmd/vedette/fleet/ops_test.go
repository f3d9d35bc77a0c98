package fleet

import (
	"testing"

	"github.com/vedette-io/vedette/internal/client"
)

// TestClaimedUsersDoNotLookProven checks that a user that is only claimed does not look like one that was proven.
func TestClaimedUsersDoNotLookProven(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    client.HistoryEntry
		want string
	}{
		{"nothing", client.HistoryEntry{}, "anonymous"},
		{"a claim", client.HistoryEntry{User: "bob", Claimed: "bob"}, "bob (claimed)"},
		{"a claim with headers of Gate", client.HistoryEntry{User: "bob", Claimed: "bob", Service: "gate"}, "bob (claimed, via gate)"},
		{"a certificate of Gate", client.HistoryEntry{User: "bob", Claimed: "bob", Service: "gate", Proven: "certificate CN=gate"}, "bob (via gate)"},
		{"another certificate", client.HistoryEntry{User: "ann", Claimed: "bob", Service: "gate", Proven: "certificate CN=ann"}, "ann (claims bob)"},
		{"a certificate", client.HistoryEntry{User: "ann", Proven: "certificate CN=ann"}, "ann"},
		{"a certificate and the same claim", client.HistoryEntry{User: "ann", Claimed: "ann", Proven: "certificate CN=ann"}, "ann"},
	} {
		if got := userText(tt.p); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
