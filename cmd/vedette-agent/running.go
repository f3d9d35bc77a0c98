package main

import (
	"context"

	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/internal/configstatus"
)

// running returns what `check --effective` says about the agent that runs on this machine.
func running(ctx context.Context, cfg *config.Config) []string {
	s := cfg.Server
	endpoint := configstatus.Endpoint{Host: s.Host, Port: s.Port, TLS: s.SSL.Enabled, Guard: s.Guard(nil)}
	return configstatus.Remarks(ctx, "agent", endpoint, cfg.Effective())
}
