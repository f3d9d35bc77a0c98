package agent

import "time"

// ConfigStatus says which configuration is in effect.
type ConfigStatus struct {
	Since time.Time `json:"since"`           // when it took effect
	Files []string  `json:"files,omitempty"` // from which it was read
	Error string    `json:"error,omitempty"` // why the files as they are now are not in effect
}

// SetConfigStatus sets what Status returns about the configuration.
func (a *Agent) SetConfigStatus(s ConfigStatus) { a.config.Store(&s) }
