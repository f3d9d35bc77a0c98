package main

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configreload"
	"github.com/vedette-io/vedette/internal/configstatus"
	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/internal/reload"
	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/config"
)

// reloadedServer is a server whose configuration changes.
type reloadedServer interface{ Apply(l server.Live) }

// reloadMetrics measures the configuration.
type reloadMetrics interface {
	ConfigInEffect(since time.Time)
	ConfigApplied()
	ConfigRejected()
}

// reloader applies changes of the configuration while the server runs. Its fields belong to the
// goroutine of watchConfig, but for those that are atomic.
type reloader struct {
	server  reloadedServer
	metrics reloadMetrics
	log     *slog.Logger

	started, current *config.Config // at the start, and now
	since            time.Time      // when the last change took effect
	logged           struct{ failure, restart string }

	secrets atomic.Pointer[config.Config]       // current, for RefreshSecrets
	status  atomic.Pointer[configstatus.Status] // for /health
}

// newReloader returns a reloader whose server must be set before watchConfig.
func newReloader(cfg *config.Config, m reloadMetrics, log *slog.Logger) *reloader {
	r := &reloader{metrics: m, log: log, started: cfg, current: cfg, since: time.Now()}
	r.secrets.Store(cfg)
	r.reportSuccess()
	return r
}

// watchConfig applies changes of the configuration until ctx ends.
func (r *reloader) watchConfig(ctx context.Context) error {
	if pipe := configreload.FirstIrregular(r.current.ReadFiles()); pipe != "" {
		r.log.Info("the configuration is not reloaded when it changes, because it cannot be read twice", "file", pipe)
		return nil
	}
	secretsChanged := make(chan struct{}, 1)
	var refreshing sync.WaitGroup
	refreshing.Go(func() { configreload.RefreshSecrets(ctx, r.secrets.Load, secretsChanged, r.log) })
	var files []string
	for _, file := range r.current.Files() {
		files = append(files, file.Path)
	}
	reload.Watch(ctx, reload.Config{Also: secretsChanged, Log: r.log}, files, r.reload)
	refreshing.Wait()
	return r.current.Close()
}

// reload reads the configuration again, and returns the files to watch.
func (r *reloader) reload(context.Context, []string) []string {
	next, looked, err := r.current.Next()
	if err != nil {
		r.reject(err)
	} else {
		r.apply(next)
	}
	files := make([]string, 0, len(looked))
	for _, file := range looked {
		files = append(files, file.Path)
	}
	return files
}

// reject keeps the configuration that is in effect.
func (r *reloader) reject(err error) {
	if r.logged.failure == err.Error() {
		return
	}
	r.logged.failure = err.Error()
	r.log.Error("the changed configuration cannot be used, the one before stays in effect", "since", r.since, "error", err)
	r.metrics.ConfigRejected()
	status := r.currentStatus()
	status.Error, status.PublicError = err.Error(), configfile.WithoutValues(err, r.current)
	r.status.Store(&status)
}

// apply puts a configuration into effect.
func (r *reloader) apply(next *config.Config) {
	changed := false
	if live := liveSettings(next); !reflect.DeepEqual(live, liveSettings(r.current)) {
		changed = true
		r.server.Apply(live)
	}
	if next.Logging.Level != r.current.Logging.Level {
		changed = true
		if err := logging.SetLevel(r.log, next.Logging.Config().Level); err != nil {
			r.log.Warn("cannot change the log level", "error", err)
		}
	}
	r.warnRestart(next)
	logging.SetSecrets(r.log, next.SecretValues())
	if err := next.Adopt(); err != nil {
		r.log.Warn("cannot clean up after the configuration before", "error", err)
	}
	r.current = next
	r.secrets.Store(next)
	if changed {
		r.since = time.Now()
		r.metrics.ConfigApplied()
		r.log.Info("the changed configuration is in effect", "config", strings.Join(next.ReadFiles(), ", "))
	} else if r.logged.failure != "" {
		r.log.Info("the configuration files agree again with what is in effect", "since", r.since)
	}
	r.logged.failure = ""
	r.reportSuccess()
}

// warnRestart warns of changes that count from the next start on only: in one line, and once.
func (r *reloader) warnRestart(next *config.Config) {
	keys := strings.Join(next.NeedRestart(r.started), ", ")
	if keys != "" && keys != r.logged.restart {
		r.log.Warn("changed settings take effect when the server is restarted", "keys", keys)
	}
	r.logged.restart = keys
}

func (r *reloader) reportSuccess() {
	r.metrics.ConfigInEffect(r.since)
	status := r.currentStatus()
	r.status.Store(&status)
}

func (r *reloader) currentStatus() configstatus.Status {
	return configstatus.Status{Since: r.since, Files: r.current.ReadFiles(), RestartKeys: r.current.NeedRestart(r.started)}
}

// healthDetails returns what everyone may know about the configuration. It may be called from any
// goroutine.
func (r *reloader) healthDetails() map[string]any {
	status := r.status.Load()
	details := map[string]any{"inEffectSince": status.Since.UTC().Format(time.RFC3339)}
	if status.PublicError != "" {
		details["error"] = "the changed files cannot be used: " + status.PublicError
	}
	if len(status.RestartKeys) > 0 {
		details["restartRequired"] = status.RestartKeys
	}
	return details
}

// liveSettings returns what may change while the server runs.
func liveSettings(cfg *config.Config) server.Live {
	return server.Live{
		Kinds: cachedKinds(cfg.Cache, cfg.Kubesvc.Cache.CacheDefaults),
		Credentials: clouddriver.CredentialRules{PrimaryAccountTypes: cfg.Credentials.PrimaryAccountTypes,
			ChallengeEnvironments: cfg.Credentials.ChallengeDestructiveActionsEnvironments},
	}
}
