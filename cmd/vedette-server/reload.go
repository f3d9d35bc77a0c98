package main

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"github.com/vedette-io/vedette/internal/configreload"
	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/config"
)

// reloadedServer is a server whose configuration changes.
type reloadedServer interface{ Apply(l server.Reloadable) }

// reloader applies changes of the configuration while the server runs.
type reloader struct {
	*configreload.Reloader[*config.Config]
	server reloadedServer
}

// newReloader returns a reloader whose server must be set before Watch.
func newReloader(cfg *config.Config, name string, m configreload.Metrics, log *slog.Logger) *reloader {
	r := &reloader{}
	r.Reloader = configreload.New(cfg, configreload.Options[*config.Config]{
		Name: name, Apply: r.apply, Metrics: m, Log: log,
	})
	return r
}

// apply puts into effect what can change while the server runs.
func (r *reloader) apply(_ context.Context, before, next *config.Config) []string {
	settings := reloadableSettings(next)
	if reflect.DeepEqual(settings, reloadableSettings(before)) {
		return nil
	}
	r.server.Apply(settings)
	return next.ChangedApplied(before)
}

// healthDetails returns what everyone may know about the configuration. It may be called from any
// goroutine.
func (r *reloader) healthDetails() map[string]any {
	status := r.Status()
	details := map[string]any{"inEffectSince": status.Since.UTC().Format(time.RFC3339)}
	if status.PublicError != "" {
		details["error"] = "the changed files cannot be used: " + status.PublicError
	}
	if len(status.RestartKeys) > 0 {
		details["restartRequired"] = status.RestartKeys
	}
	return details
}

// reloadableSettings returns what may change while the server runs.
func reloadableSettings(cfg *config.Config) server.Reloadable {
	return server.Reloadable{
		Kinds: cachedKinds(cfg.Cache, cfg.Kubesvc.Cache.CacheDefaults),
		Credentials: clouddriver.CredentialRules{PrimaryAccountTypes: cfg.Credentials.PrimaryAccountTypes,
			ChallengeEnvironments: cfg.Credentials.ChallengeDestructiveActionsEnvironments},
	}
}
