package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/vedette-io/vedette/internal/mask"
	"github.com/vedette-io/vedette/internal/probe"
	"github.com/vedette-io/vedette/server/config"
	"github.com/vedette-io/vedette/server/discover"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/upstream"
)

// check reads the files that a configuration names, such as certificates, and the URL of the
// database. It connects to nothing.
func check(cfg *config.Config) error {
	settings, err := newServerConfig(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	errs := []error{settings.Store.Validate(context.Background())}
	for _, shard := range settings.Store.Shards {
		if err := settings.Store.ShardConfig(shard).Validate(context.Background()); err != nil {
			errs = append(errs, fmt.Errorf("database %s of sql.shards: %w", shard.Name, err))
		}
	}
	return errors.Join(errs...)
}

// probes returns what `check --connect` tries.
func probes(cfg *config.Config) ([]probe.Probe, error) {
	settings, err := newServerConfig(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	all := []probe.Probe{probe.One("database "+cfg.Database().String(), func(ctx context.Context) (string, error) {
		return sqldb.Probe(ctx, settings.Store)
	})}
	for i, shard := range cfg.Shards() {
		all = append(all, probe.One("database "+shard.Name+" "+shard.URL.String(), func(ctx context.Context) (string, error) {
			return sqldb.Probe(ctx, settings.Store.ShardConfig(settings.Store.Shards[i]))
		}))
	}
	if fiat := settings.Fiat; fiat != nil {
		all = append(all, probe.One(named("Fiat", fiat.BaseURL), func(ctx context.Context) (string, error) { return "", fiat.Probe(ctx) }))
	}
	if front50 := cfg.Front50.Client(); front50 != nil {
		all = append(all, probe.One(named("Front50", cfg.Front50.BaseURL),
			func(ctx context.Context) (string, error) { return "", front50.Probe(ctx) }))
	}
	if remote := settings.Upstream; remote != nil {
		all = append(all, probe.One(named("upstream Clouddriver", remote.BaseURL), func(ctx context.Context) (string, error) {
			accounts, err := upstream.Probe(ctx, *remote)
			return fmt.Sprintf("%d accounts", accounts), err
		}))
	}
	if d := settings.Discovery; d.Mode == discover.ModeKubernetes {
		all = append(all, probe.One("servers in Kubernetes", d.Kubernetes.Probe))
	}
	return all, nil
}

// named returns the name of a service with its address.
func named(service, address string) string { return service + " " + mask.URLs(address) }
