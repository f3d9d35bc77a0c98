package main

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/bearer"
	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/internal/configreload"
)

// reloadedAgent is an agent whose configuration changes.
type reloadedAgent interface {
	SetAccounts(ctx context.Context, accounts []agent.Account)
	RereadCredentials()
	SetConfigStatus(s configreload.Status)
}

// reloader applies changes of the configuration while the agent runs.
type reloader struct {
	*configreload.Reloader[*config.Config]
	agent reloadedAgent
	token *bearer.Variable // that is sent to the server; nil if the agent was started without one
	log   *slog.Logger

	accounts []agent.Account // in effect
	rejected string          // that was logged
}

func newReloader(cfg *config.Config, accounts []agent.Account, a reloadedAgent, m configreload.Metrics, log *slog.Logger) *reloader {
	r := &reloader{agent: a, log: log, accounts: accounts, rejected: describeRejected(cfg)}
	r.Reloader = configreload.New(cfg, configreload.Options[*config.Config]{
		Name: string(cfg.AgentID), Apply: r.apply, Report: a.SetConfigStatus, Rejected: rejectedNames,
		Credentials: r.credentials, FilesChanged: a.RereadCredentials, Metrics: m, Log: log,
	})
	return r
}

// apply puts the accounts and the token of a configuration into effect.
func (r *reloader) apply(ctx context.Context, before, next *config.Config) (changed []string) {
	accounts := r.accountsOf(next)
	if !reflect.DeepEqual(accounts, r.accounts) {
		changed = append(changed, "kubernetes.accounts")
		r.agent.SetAccounts(ctx, accounts)
	}
	r.accounts = accounts
	if r.setToken(before.Clouddriver.Auth, next.Clouddriver.Auth) {
		changed = append(changed, "clouddriver.auth")
	}
	return changed
}

// credentials returns the files of the accounts.
func (r *reloader) credentials() []string {
	var files []string
	for _, account := range r.accounts {
		files = append(files, account.Access.Files()...)
	}
	return files
}

// setToken replaces the token for later connections to the server, and reports whether it differs.
func (r *reloader) setToken(before, next config.Auth) bool {
	token := tokenOf(next)
	if r.token == nil || token == "" || token == tokenOf(before) {
		return false
	}
	r.token.Set(token)
	return true
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
		if rejected != r.rejected {
			r.log.Error("account is invalid", "account", invalid.Name, "stays", kept != nil, "at", invalid.At.String(), "error", invalid.Reason)
		}
	}
	r.rejected = rejected
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

func rejectedNames(cfg *config.Config) []string {
	var names []string
	for _, r := range cfg.RejectedAccounts {
		names = append(names, r.Name)
	}
	return names
}
