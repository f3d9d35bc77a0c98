package assigner

import "time"

// ConfigStatus is what an agent says about its configuration. The zero value is for agents that say
// nothing.
type ConfigStatus struct {
	Since   time.Time // when the configuration that the agent uses took effect, by this server's clock
	Current bool      // whether all that the agent's files contain is in effect
	Reason  string    // one word; empty only in the zero value
	Message string
}

// SetConfig records what the agent says about its configuration.
func (m *Member) SetConfig(s ConfigStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.config = s
}

// Config returns what the agent last said about its configuration.
func (m *Member) Config() ConfigStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.config
}
