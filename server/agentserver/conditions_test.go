package agentserver

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/vedette-io/vedette/wire"
)

// TestConditionsAreBounded checks what becomes of conditions that an agent may send: too many, too long, with bytes that
// are not text, and from a clock that is wrong.
func TestConditionsAreBounded(t *testing.T) {
	now := time.Now()
	m := &wire.Conditions{}
	for range 1000 {
		m.Conditions = append(m.Conditions, &wire.Condition{Type: strings.Repeat("T", 9999), Reason: "a\xff\x00\nb", Message: strings.Repeat("\xff", 1<<20),
			AgeMillis: math.MaxInt64})
	}
	m.Conditions[0].AgeMillis = -5
	conditions, size := toConditions(m, now)
	if len(conditions) != maxConditions || size > maxConditions*(2*maxConditionWord+maxConditionMessage) {
		t.Errorf("got %d conditions of %d bytes", len(conditions), size)
	}
	for i, c := range conditions {
		if len(c.Type) > maxConditionWord || len(c.Reason) > maxConditionWord || len(c.Message) > maxConditionMessage ||
			!utf8.ValidString(c.Reason+c.Message) || strings.ContainsAny(c.Reason, "\x00") {
			t.Errorf("condition %d: got type %q, reason %q and a message of %d bytes", i, c.Type, c.Reason, len(c.Message))
		}
		if c.Since.After(now) || i == 0 && !c.Since.Equal(now) {
			t.Errorf("condition %d: got %v, want a time before %v", i, c.Since, now)
		}
	}
}
