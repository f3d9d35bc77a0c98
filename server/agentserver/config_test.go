package agentserver

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/vedette-io/vedette/wire"
)

// TestConfigStatusOfAnyAgent checks that whatever an agent says about its configuration can be shown.
func TestConfigStatusOfAnyAgent(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, tt := range []struct {
		name          string
		from          *wire.ConfigStatus
		since         time.Time
		reason, start string // of the message
	}{
		{"an honest one", &wire.ConfigStatus{AgeMillis: 90_000, Current: true, Reason: "InEffect", Message: "/a.yml"}, now.Add(-90 * time.Second), "InEffect", "/a.yml"},
		{"nothing", &wire.ConfigStatus{}, now, "Unknown", ""},
		{"in the future", &wire.ConfigStatus{AgeMillis: -1, Reason: "InEffect"}, now, "InEffect", ""},
		{"before all time", &wire.ConfigStatus{AgeMillis: math.MaxInt64, Reason: "InEffect"}, now.Add(-maxConfigAge), "InEffect", ""},
		{"a sentence as a reason", &wire.ConfigStatus{Reason: "In effect\n"}, now, "Unknown", ""},
		{"a long reason", &wire.ConfigStatus{Reason: strings.Repeat("a", 65)}, now, "Unknown", ""},
		{"a long message with control characters and bad bytes", &wire.ConfigStatus{Reason: "Rejected", Message: "\x1b[2J\xff" + strings.Repeat("é", 1<<20)}, now, "Rejected", " [2J\ufffdé"},
	} {
		got := toConfigStatus(tt.from, now)
		if !got.Since.Equal(tt.since) || got.Reason != tt.reason || !strings.HasPrefix(got.Message, tt.start) || got.Current != tt.from.GetCurrent() {
			t.Errorf("%s: got %+v", tt.name, got)
		}
		if len(got.Message) > maxConfigMessage || !utf8.ValidString(got.Message) {
			t.Errorf("%s: got a message of %d bytes", tt.name, len(got.Message))
		}
	}
}
