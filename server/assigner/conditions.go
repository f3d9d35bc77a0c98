package assigner

import (
	"slices"

	"github.com/vedette-io/vedette"
)

// SetConditions records all conditions that the agent reports of an account, or of itself if the name is empty.
// Times are by this server's clock.
func (m *Member) SetConditions(name vedette.AccountName, conditions []vedette.Condition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(conditions) == 0 {
		delete(m.conditions, name)
		return
	}
	if m.conditions == nil {
		m.conditions = map[vedette.AccountName][]vedette.Condition{}
	}
	m.conditions[name] = conditions
}

// Conditions returns what SetConditions has recorded.
func (m *Member) Conditions(name vedette.AccountName) []vedette.Condition {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.conditions[name])
}
