package agent

import (
	"strings"

	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/internal/configreload"
)

// SetConfigStatus sets what Status returns about the configuration, and what the server shows.
func (a *Agent) SetConfigStatus(s configreload.Status) {
	a.config.Store(&s)
	a.link.ReportConfig(configForServer(s))
}

// The reasons that the server shows. They are part of the API.
const (
	configInEffect         = "InEffect"
	configRejected         = "Rejected"         // the files cannot be used
	configAccountsRejected = "AccountsRejected" // some accounts of the files cannot be used
	configRestartRequired  = "RestartRequired"
)

// configForServer returns a status with its most important reason.
func configForServer(s configreload.Status) uplink.ConfigStatus {
	status := uplink.ConfigStatus{Since: s.Since}
	switch {
	case s.Error != "":
		status.Reason, status.Message = configRejected, "the changed files cannot be used: "+s.PublicError
	case len(s.RejectedAccounts) > 0:
		status.Reason = configAccountsRejected
		status.Message = "invalid accounts (the agent's log has the reasons): " + strings.Join(s.RejectedAccounts, ", ")
	case len(s.RestartKeys) > 0:
		status.Reason = configRestartRequired
		status.Message = "changed settings take effect when the agent is restarted: " + strings.Join(s.RestartKeys, ", ")
	default:
		status.Reason, status.Current = configInEffect, true
		status.Message = strings.Join(s.Files, ", ")
	}
	return status
}
