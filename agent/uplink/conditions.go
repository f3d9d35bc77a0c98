package uplink

import (
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// maxConditionMessage bounds the message of a condition, in bytes. The server cuts it there, too.
const maxConditionMessage = 1 << 10

// ReportConditions sends all conditions of an account, or of this agent if the name is empty, on this connection
// and on each later one.
func (u *Uplink) ReportConditions(account vedette.AccountName, conditions []vedette.Condition) {
	conditions = slices.Clone(conditions)
	for i := range conditions {
		conditions[i].Message = vedette.CleanText(conditions[i].Message, maxConditionMessage)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if slices.Equal(u.conditions[account], conditions) {
		return
	}
	u.conditions[account] = conditions
	if len(conditions) == 0 {
		delete(u.conditions, account)
	}
	u.sendControlLocked(conditionsMessage(account, conditions, time.Now()))
}

// conditionsMessage says how long ago conditions have changed, and not when, because clocks differ.
func conditionsMessage(account vedette.AccountName, conditions []vedette.Condition, now time.Time) *wire.AgentMessage {
	m := &wire.Conditions{Account: string(account)}
	for _, c := range conditions {
		m.Conditions = append(m.Conditions, &wire.Condition{Type: c.Type, Holds: c.Holds, Reason: c.Reason, Message: c.Message,
			AgeMillis: max(0, now.Sub(c.Since).Milliseconds())})
	}
	return &wire.AgentMessage{Message: &wire.AgentMessage_Conditions{Conditions: m}}
}
