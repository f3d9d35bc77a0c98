package main

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/bearer"
	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configreload"
	"github.com/vedette-io/vedette/internal/configstatus"
	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/internal/reload"
)

// reloadedAgent is an agent whose configuration changes.
type reloadedAgent interface {
	SetAccounts(ctx context.Context, accounts []agent.Account)
	RereadCredentials()
	SetConfigStatus(s configstatus.Status)
}

// reloadMetrics measures the configuration.
type reloadMetrics interface {
	ConfigInEffect(since time.Time)
	ConfigApplied()
	ConfigRejected()
}

// reloader applies changes of the configuration while the agent runs. Its fields belong to the goroutine
// of watchConfig.
type reloader struct {
	agent   reloadedAgent
	metrics reloadMetrics
	token   *bearer.Variable // that is sent to the server; nil if the agent was started without one
	log     *slog.Logger

	started  *config.Config  // with which the agent was started
	current  *config.Config  // in effect
	accounts []agent.Account // in effect
	since    time.Time       // when the last change took effect
	logged   struct{ failure, restart, rejected string }

	secrets  atomic.Pointer[config.Config] // current, for RefreshSecrets
	inEffect atomic.Pointer[inEffect]      // for operators
}

func newReloader(cfg *config.Config, accounts []agent.Account, a reloadedAgent, m reloadMetrics, log *slog.Logger) *reloader {
	r := &reloader{agent: a, metrics: m, log: log, started: cfg, current: cfg, accounts: accounts, since: time.Now()}
	r.logged.rejected = describeRejected(cfg)
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
	reload.Watch(ctx, reload.Config{Also: secretsChanged, Log: r.log}, r.files(), r.reload)
	refreshing.Wait()
	return r.current.Close()
}

// files returns the files whose change may change what is in effect.
func (r *reloader) files() []string {
	var files []string
	for _, file := range r.current.Files() {
		files = append(files, file.Path)
	}
	return r.withCredentials(files)
}

// withCredentials adds the files of the accounts.
func (r *reloader) withCredentials(files []string) []string {
	for _, account := range r.accounts {
		files = append(files, account.Access.Files()...)
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// reload reads the configuration again, after files have changed, and returns the files to watch.
func (r *reloader) reload(ctx context.Context, changed []string) []string {
	next, looked, err := r.current.Next()
	if err != nil {
		r.reject(err)
	} else {
		r.apply(ctx, next)
	}
	if len(changed) > 0 {
		r.agent.RereadCredentials()
	}
	files := make([]string, 0, len(looked))
	for _, file := range looked {
		files = append(files, file.Path)
	}
	return r.withCredentials(files)
}

// reject keeps the configuration that is in effect.
func (r *reloader) reject(err error) {
	if r.logged.failure == err.Error() {
		return
	}
	r.logged.failure = err.Error()
	r.log.Error("the changed configuration cannot be used, the one before stays in effect", "since", r.since, "error", err)
	r.metrics.ConfigRejected()
	status := r.status()
	status.Error, status.PublicError = err.Error(), configfile.WithoutValues(err, r.current)
	r.report(status)
}

// apply puts a configuration into effect.
func (r *reloader) apply(ctx context.Context, next *config.Config) {
	accounts := r.accountsOf(next)
	var changed []string
	if !reflect.DeepEqual(accounts, r.accounts) {
		changed = append(changed, "kubernetes.accounts")
		r.agent.SetAccounts(ctx, accounts)
	}
	if next.Logging.Level != r.current.Logging.Level {
		changed = append(changed, "logging.level")
		r.setLevel(next.Logging.Level)
	}
	if r.setToken(next.Clouddriver.Auth) {
		changed = append(changed, "clouddriver.auth")
	}
	r.warnRestart(next)
	logging.SetSecrets(r.log, next.SecretValues())
	if err := next.Adopt(); err != nil {
		r.log.Warn("cannot clean up after the configuration before", "error", err)
	}
	r.current, r.accounts = next, accounts
	r.secrets.Store(next)
	if len(changed) > 0 {
		r.since = time.Now()
		r.metrics.ConfigApplied()
		r.log.Info("the changed configuration is in effect", "config", strings.Join(next.ReadFiles(), ", "),
			"changed", changed, "accounts", len(accounts))
	} else if r.logged.failure != "" {
		r.log.Info("the configuration files agree again with what is in effect", "since", r.since)
	}
	r.logged.failure = ""
	r.reportSuccess()
}

func (r *reloader) reportSuccess() {
	r.metrics.ConfigInEffect(r.since)
	r.report(r.status())
}

func (r *reloader) report(s configstatus.Status) {
	r.inEffect.Store(&inEffect{started: r.started, current: r.current, status: s})
	r.agent.SetConfigStatus(s)
}

// status returns what is in effect.
func (r *reloader) status() configstatus.Status {
	s := configstatus.Status{Since: r.since, Files: r.current.ReadFiles(), RestartKeys: r.current.NeedRestart(r.started)}
	for _, rejected := range r.current.RejectedAccounts {
		s.RejectedAccounts = append(s.RejectedAccounts, rejected.Name)
	}
	return s
}

// setToken replaces the token for later connections to the server, and reports whether it differs.
func (r *reloader) setToken(auth config.Auth) bool {
	token := tokenOf(auth)
	if r.token == nil || token == "" || token == tokenOf(r.current.Clouddriver.Auth) {
		return false
	}
	r.token.Set(token)
	return true
}

func (r *reloader) setLevel(level string) {
	if err := logging.SetLevel(r.log, level); err != nil {
		r.log.Warn("cannot change the log level", "error", err)
	}
}

// warnRestart warns of changes that count from the next start on only: in one line, and once.
func (r *reloader) warnRestart(next *config.Config) {
	keys := strings.Join(next.NeedRestart(r.started), ", ")
	if keys != "" && keys != r.logged.restart {
		r.log.Warn("changed settings take effect when the agent is restarted", "keys", keys)
	}
	r.logged.restart = keys
}

// accountsOf returns the accounts of a configuration. An account that has become invalid stays as it
// is in effect.
func (r *reloader) accountsOf(next *config.Config) []agent.Account {
	var accounts []agent.Account
	for _, a := range next.Kubernetes.Accounts {
		accounts = append(accounts, newAccount(next, a))
	}
	rejected := describeRejected(next)
	for _, invalid := range next.RejectedAccounts {
		kept := r.keep(accounts, invalid.Name)
		if kept != nil {
			accounts = append(accounts, *kept)
		}
		if rejected != r.logged.rejected {
			r.log.Error("account is invalid", "account", invalid.Name, "stays", kept != nil, "at", invalid.At.String(), "error", invalid.Reason)
		}
	}
	r.logged.rejected = rejected
	return accounts
}

// keep returns the account of a name that is in effect, unless accounts has it.
func (r *reloader) keep(accounts []agent.Account, name string) *agent.Account {
	isNamed := func(a agent.Account) bool { return string(a.Name) == name }
	at := slices.IndexFunc(r.accounts, isNamed)
	if at < 0 || slices.ContainsFunc(accounts, isNamed) {
		return nil
	}
	return &r.accounts[at]
}

// describeRejected returns a text that is equal for equal rejected accounts.
func describeRejected(cfg *config.Config) string {
	var text strings.Builder
	for _, r := range cfg.RejectedAccounts {
		text.WriteString(r.Name + ": " + r.Reason.Error() + "\n")
	}
	return text.String()
}
