package uplink

import (
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// ConfigStatus says which configuration the agent uses. The server shows it to users.
type ConfigStatus struct {
	Since   time.Time // when it took effect
	Current bool      // whether all that the files contain is in effect
	Reason  string    // one word
	Message string    // must not contain values of the configuration
}

// maxConfigMessage bounds the message, in bytes. The server cuts it there, too.
const maxConfigMessage = 1 << 10

// ReportConfig sends which configuration the agent uses, on this connection and on each later one.
func (u *Uplink) ReportConfig(s ConfigStatus) {
	s.Message = vedette.CleanText(s.Message, maxConfigMessage)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.config != nil && *u.config == s {
		return
	}
	u.config = &s
	u.sendControlLocked(s.message(time.Now()))
}

// message says how long ago the configuration took effect, and not when, because clocks differ.
func (s ConfigStatus) message(now time.Time) *wire.AgentMessage {
	return &wire.AgentMessage{Message: &wire.AgentMessage_ConfigStatus{ConfigStatus: &wire.ConfigStatus{
		AgeMillis: max(0, now.Sub(s.Since).Milliseconds()), Current: s.Current, Reason: s.Reason, Message: s.Message,
	}}}
}
