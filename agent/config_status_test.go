package agent

import (
	"testing"
	"time"

	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/internal/configreload"
)

// TestConfigStatusForServer checks which of several reasons the server shows, and that it gets no
// values.
func TestConfigStatusForServer(t *testing.T) {
	since := time.Unix(1_700_000_000, 0)
	full := configreload.Status{Since: since, Files: []string{"/a.yml", "/b.yml"}, Error: `"token" must be x, got "hunter2"`,
		PublicError: `"token" must be x`, RejectedAccounts: []string{"dev", "prod"}, RestartKeys: []string{"server.port"}}
	for _, tt := range []struct {
		name   string
		change func(s *configreload.Status)
		want   uplink.ConfigStatus
	}{
		{"broken files", func(*configreload.Status) {},
			uplink.ConfigStatus{Since: since, Reason: "Rejected", Message: `the changed files cannot be used: "token" must be x`}},
		{"invalid accounts", func(s *configreload.Status) { s.Error = "" },
			uplink.ConfigStatus{Since: since, Reason: "AccountsRejected", Message: "invalid accounts (the agent's log has the reasons): dev, prod"}},
		{"settings that need a restart", func(s *configreload.Status) { s.RejectedAccounts = nil },
			uplink.ConfigStatus{Since: since, Reason: "RestartRequired", Message: "changed settings take effect when the agent is restarted: server.port"}},
		{"all is in effect", func(s *configreload.Status) { s.RestartKeys = nil },
			uplink.ConfigStatus{Since: since, Current: true, Reason: "InEffect", Message: "/a.yml, /b.yml"}},
	} {
		tt.change(&full)
		if got := configForServer(full); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
