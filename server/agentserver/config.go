package agentserver

import (
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/wire"
)

const (
	maxConfigReason  = 64      // bytes; a longer one is not a word
	maxConfigMessage = 1 << 10 // bytes
	maxConfigAge     = 10 * 365 * 24 * time.Hour
)

// toConfigStatus converts what an agent says about its configuration. now is by this server's clock.
func toConfigStatus(c *wire.ConfigStatus, now time.Time) assigner.ConfigStatus {
	age := min(max(0, c.GetAgeMillis()), maxConfigAge.Milliseconds())
	return assigner.ConfigStatus{
		Since: now.Add(-time.Duration(age) * time.Millisecond), Current: c.GetCurrent(), Reason: cleanReason(c.GetReason()),
		Message: vedette.CleanText(c.GetMessage(), maxConfigMessage),
	}
}

// cleanReason returns a reason that is one word, or "Unknown".
func cleanReason(reason string) string {
	isOther := func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }
	if reason == "" || len(reason) > maxConfigReason || strings.ContainsFunc(reason, isOther) {
		return "Unknown"
	}
	return reason
}
