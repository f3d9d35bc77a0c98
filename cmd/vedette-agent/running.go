package main

import (
	"context"

	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/internal/configstatus"
)

// inEffect is what the agent was started with, and what it uses now.
type inEffect struct {
	started, current *config.Config
	status           configstatus.Status
}

// effective returns what is in effect for operators. It may be called from any goroutine.
func (r *reloader) effective() configstatus.Effective {
	e := r.inEffect.Load()
	return configstatus.Effective{Status: e.status, Name: string(e.started.AgentID), Settings: e.current.InEffect(e.started)}
}

// running returns what `check --effective` says about the agent that runs on this machine.
func running(ctx context.Context, cfg *config.Config) []string {
	s := cfg.Server
	endpoint := configstatus.Endpoint{Host: s.Host, Port: s.Port, TLS: s.SSL.Enabled, Token: s.AdminToken.Reveal()}
	return configstatus.Remarks(ctx, "agent", endpoint, cfg.Effective())
}
