package agentserver

import (
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// Limits of what an agent may say of an account in conditions.
const (
	maxConditions       = 8
	maxConditionWord    = 64      // bytes of a type or a reason
	maxConditionMessage = 1 << 10 // bytes of a message
)

// setConditions records the conditions of an account that the agent has named, or of the agent itself.
func (s *session) setConditions(m *wire.Conditions, now time.Time) {
	name := vedette.AccountName(m.GetAccount())
	conditions, size := toConditions(m, now)
	if name != "" {
		if _, known := s.tracked(name); !known || !s.track(name, size) {
			s.logUnknownAccount("conditions", name)
			return
		}
	}
	s.member.SetConditions(name, conditions)
}

// toConditions converts conditions, and returns about how much memory their texts take. now is by this server's
// clock.
func toConditions(m *wire.Conditions, now time.Time) (conditions []vedette.Condition, size int) {
	for _, c := range m.GetConditions()[:min(len(m.GetConditions()), maxConditions)] {
		condition := vedette.Condition{
			Type: vedette.CleanText(c.GetType(), maxConditionWord), Holds: c.GetHolds(),
			Reason: vedette.CleanText(c.GetReason(), maxConditionWord), Message: vedette.CleanText(c.GetMessage(), maxConditionMessage),
			Since: now.Add(-boundedMillis(c.GetAgeMillis())),
		}
		conditions = append(conditions, condition)
		size += len(condition.Type) + len(condition.Reason) + len(condition.Message)
	}
	return conditions, size
}
