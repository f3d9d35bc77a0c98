package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/preflight"
	"github.com/vedette-io/vedette/internal/probe"
)

// check returns why the agent, or one of its accounts, would not work with a configuration: rejected
// accounts, and files that are missing or cannot be used.
func check(cfg *config.Config) error {
	var errs []error
	for _, r := range cfg.RejectedAccounts {
		errs = append(errs, r.Reason)
	}
	if len(cfg.Kubernetes.Accounts)+len(cfg.RejectedAccounts) == 0 {
		errs = append(errs, vedette.Errorf(vedette.Invalid, "there are no accounts, so the agent would report nothing: add entries to kubernetes.accounts"))
	}
	if _, err := cfg.Server.SSL.TLSConfig(); err != nil {
		errs = append(errs, fmt.Errorf("server.ssl: %w", err))
	}
	if _, err := cfg.Prometheus.SSL.TLSConfig(); cfg.Prometheus.Enabled && err != nil {
		errs = append(errs, fmt.Errorf("prometheus.ssl: %w", err))
	}
	if _, err := cfg.Management.Server.SSL.TLSConfig(); cfg.Management.IsEnabled() && err != nil {
		errs = append(errs, fmt.Errorf("management.server.ssl: %w", err))
	}
	settings, err := newAgentConfig(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		errs = append(errs, fmt.Errorf("clouddriver.tls: %w", err))
	}
	return errors.Join(append(errs, preflight.CheckFiles(settings))...)
}

// notes returns who issues the credentials of accounts, which depends on what is installed here.
func notes(cfg *config.Config) []string {
	settings, err := newAgentConfig(cfg, slog.New(slog.DiscardHandler))
	if err != nil { // which check reports
		return nil
	}
	return preflight.Issuers(settings)
}

// probes returns what `check --connect` tries.
func probes(cfg *config.Config) ([]probe.Probe, error) {
	settings, err := newAgentConfig(cfg, slog.New(slog.DiscardHandler))
	if err != nil { // without its certificates the server cannot be tried, but the clusters can
		return preflight.AccountProbes(settings), nil
	}
	return preflight.Probes(settings), nil
}
