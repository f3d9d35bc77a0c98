// Package configreload applies changes of configuration files while a program runs, and says which configuration is in
// effect, since when, and how it differs from the files. Programs serve that to operators, and the command check asks for it.
package configreload

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/filewatch"
	"github.com/vedette-io/vedette/internal/logging"
)

// Config is a configuration that can be loaded again. C is its own type.
type Config[C any] interface {
	files
	refresher
	successor[C]
	// LogLevel returns the lowest level to log.
	LogLevel() string
	// SecretValues returns what must not be logged.
	SecretValues() []string
	// NeedRestart returns the keys that differ and count from the next start on only.
	NeedRestart(started C) []string
	// Effective returns all settings, with secrets masked.
	Effective() []configfile.KeyValue
	// Reloadable returns the keys that a running program reloads.
	Reloadable() Reloadable
}

// files are those of a configuration.
type files interface {
	Files() []configfile.File
	ReadFiles() []string
}

// successor is a configuration that another one follows.
type successor[C any] interface {
	Next() (C, []configfile.File, error)
	Adopt() error
	Close() error
}

// Metrics measures the configuration.
type Metrics interface {
	ConfigInEffect(since time.Time)
	ConfigApplied()
	ConfigRejected()
}

// Options is what is different in each program. Apply, Metrics and Log must be set. The functions are
// called by the goroutine of New, and later of Watch.
type Options[C any] struct {
	Name string // of the agent or server
	// Apply puts into effect what can change while the program runs, besides the log level, and returns
	// the keys that have changed.
	Apply func(ctx context.Context, before, next C) []string
	// Report gets what is in effect after each reload; may be nil.
	Report func(s Status)
	// Rejected returns the names of accounts that are invalid; may be nil.
	Rejected func(current C) []string
	// Credentials returns further files to watch; may be nil. FilesChanged is called after a reload
	// because of changed files, also of a configuration that cannot be used; may be nil.
	Credentials  func() []string
	FilesChanged func()
	// WithoutNotifications looks at files every few seconds only, as where the kernel does not notify.
	WithoutNotifications bool
	Metrics              Metrics
	Log                  *slog.Logger
}

// Reloader applies changes of a configuration. Its fields belong to the goroutine of Watch, but for
// those that are atomic.
type Reloader[C Config[C]] struct {
	o                Options[C]
	started, current C         // at the start, and now
	since            time.Time // when the last change took effect
	logged           struct{ failure, restart string }
	inEffect         atomic.Pointer[inEffect[C]]
}

// inEffect is what the program was started with, and what it uses now.
type inEffect[C any] struct {
	started, current C
	status           Status
}

// New returns a reloader for a program that was started with a configuration.
func New[C Config[C]](started C, o Options[C]) *Reloader[C] {
	r := &Reloader[C]{o: o, started: started, current: started, since: time.Now()}
	r.reportSuccess()
	return r
}

// Reload reads the configuration again, after files have changed, and returns the files to watch.
func (r *Reloader[C]) Reload(ctx context.Context, changed []string) []string {
	return r.reload(ctx, filewatch.Change{Paths: changed})
}

// reload is Reload for a change that may not be complete anymore when the files are read. Nothing
// happens then: another change follows.
func (r *Reloader[C]) reload(ctx context.Context, change filewatch.Change) []string {
	next, looked, err := r.current.Next()
	isCurrent := change.IsCurrent(paths(looked))
	switch {
	case !isCurrent && err == nil:
		r.discard(next)
	case !isCurrent:
	case err != nil:
		r.reject(err)
	default:
		r.apply(ctx, next)
	}
	if len(change.Paths) > 0 && r.o.FilesChanged != nil {
		r.o.FilesChanged()
	}
	return r.watched(looked)
}

// discard closes a configuration that is not used.
func (r *Reloader[C]) discard(next C) {
	if err := next.Close(); err != nil {
		r.o.Log.Warn("cannot clean up after a configuration that is not used", "error", err)
	}
}

// reject keeps the configuration that is in effect.
func (r *Reloader[C]) reject(err error) {
	if r.logged.failure == err.Error() {
		return
	}
	r.logged.failure = err.Error()
	r.o.Log.Error("the changed configuration cannot be used, the one before stays in effect", "since", r.since, "error", err)
	r.o.Metrics.ConfigRejected()
	status := r.status()
	status.Error, status.PublicError = err.Error(), configfile.WithoutValues(err, r.current)
	r.report(status)
}

// apply puts a configuration into effect.
func (r *Reloader[C]) apply(ctx context.Context, next C) {
	// Code that uses the new secrets may log them at once. Code that uses the old ones may log these until it ends.
	logging.SetSecrets(r.o.Log, slices.Concat(r.current.SecretValues(), next.SecretValues()))
	changed := r.o.Apply(ctx, r.current, next)
	if next.LogLevel() != r.current.LogLevel() {
		changed = append(changed, "logging.level")
		r.setLevel(next.LogLevel())
	}
	r.warnRestart(next)
	if err := next.Adopt(); err != nil {
		r.o.Log.Warn("cannot clean up after the configuration before", "error", err)
	}
	r.current = next
	r.logSuccess(changed)
	r.reportSuccess()
}

func (r *Reloader[C]) setLevel(level string) {
	if err := logging.SetLevel(r.o.Log, level); err != nil {
		r.o.Log.Warn("cannot change the log level", "error", err)
	}
}

// warnRestart warns of changes that count from the next start on only: in one line, and once.
func (r *Reloader[C]) warnRestart(next C) {
	keys := strings.Join(next.NeedRestart(r.started), ", ")
	if keys != "" && keys != r.logged.restart {
		r.o.Log.Warn("changed settings take effect after a restart", "keys", keys)
	}
	r.logged.restart = keys
}

func (r *Reloader[C]) logSuccess(changed []string) {
	if len(changed) > 0 {
		r.since = time.Now()
		r.o.Metrics.ConfigApplied()
		r.o.Log.Info("the changed configuration is in effect", "config", strings.Join(r.current.ReadFiles(), ", "), "changed", changed)
	} else if r.logged.failure != "" {
		r.o.Log.Info("the configuration files agree again with what is in effect", "since", r.since)
	}
	r.logged.failure = ""
}

func (r *Reloader[C]) reportSuccess() {
	r.o.Metrics.ConfigInEffect(r.since)
	r.report(r.status())
}

func (r *Reloader[C]) report(s Status) {
	r.inEffect.Store(&inEffect[C]{started: r.started, current: r.current, status: s})
	if r.o.Report != nil {
		r.o.Report(s)
	}
}

func (r *Reloader[C]) status() Status {
	s := Status{Since: r.since, Files: r.current.ReadFiles(), RestartKeys: r.current.NeedRestart(r.started)}
	if r.o.Rejected != nil {
		s.RejectedAccounts = r.o.Rejected(r.current)
	}
	return s
}

// Status returns which configuration is in effect. It may be called from any goroutine.
func (r *Reloader[C]) Status() Status { return r.inEffect.Load().status }

// Effective returns what is in effect for operators. It may be called from any goroutine.
func (r *Reloader[C]) Effective() Effective {
	e := r.inEffect.Load()
	return Effective{Status: e.status, Name: r.o.Name, Settings: e.current.Reloadable().InEffect(e.started.Effective(), e.current.Effective())}
}
