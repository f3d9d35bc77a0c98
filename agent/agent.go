// Package agent puts the agent's stations together: each account's cluster is
// watched, what it shows is redacted and put into the outbox, and the uplink
// carries it to the server.
package agent

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/executor"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
)

// Config is all that an agent must know.
type Config struct {
	Uplink   uplink.Config
	Accounts []Account
	Redact   redact.Config
	// OutboxBytes bounds what is kept until the server acknowledges it, of all
	// accounts together. Zero means 8 MiB.
	OutboxBytes int
	Watch       watch.Config
	// ConnectOptions says how to talk to clusters.
	ConnectOptions kube.Options
	// RereadInterval is how often kubeconfigs and certificates are looked at, in case they
	// have changed. Zero means 30 s.
	RereadInterval time.Duration
	Operate        operate.Config // its Redactor and Wanted are filled in for each account
	Executor       executor.Config
}

// Account is one cluster and what to show of it.
type Account struct {
	Name       vedette.AccountName
	Access     kube.Access
	Selection  watch.Selection
	Properties vedette.Properties
}

// Agent is safe for concurrent use.
type Agent struct {
	cfg      Config
	box      *outbox.Box
	link     *uplink.Uplink
	executor *executor.Executor
	log      *slog.Logger

	accounts map[vedette.AccountName]*account
	liveness liveness

	mu       sync.Mutex
	settings uplink.ServerSettings
}

// New returns an agent. Nothing is dialled before Run.
func New(cfg Config, log *slog.Logger) *Agent {
	if cfg.OutboxBytes == 0 {
		cfg.OutboxBytes = 8 << 20
	}
	if cfg.RereadInterval == 0 {
		cfg.RereadInterval = 30 * time.Second
	}
	if cfg.Watch.Limiter == nil {
		cfg.Watch.Limiter = watch.NewLimiter(0)
	}
	if cfg.Watch.Log == nil {
		cfg.Watch.Log = log
	}
	a := &Agent{cfg: cfg, box: outbox.New(cfg.OutboxBytes), log: log, accounts: map[vedette.AccountName]*account{}}
	a.executor = executor.New(cfg.Executor, a.execute, func(out vedette.Outcome) { a.link.Answer(out) })
	a.link = uplink.New(cfg.Uplink, a.box, a, a.executor, log)
	for _, account := range cfg.Accounts {
		a.accounts[account.Name] = newAccount(a, account)
	}
	return a
}

// Run serves all accounts until ctx ends.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.cfg.Redact.Validate(); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.runLivenessLoop(ctx) })
	group.Go(func() error { return a.executor.Run(ctx) })
	group.Go(func() error { return a.link.Run(ctx) })
	for _, account := range a.accounts {
		group.Go(func() error { return account.run(ctx) })
	}
	return group.Wait()
}

// Connected implements the uplink's listener.
func (a *Agent) Connected(t uplink.ServerSettings) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settings = t
}

func (a *Agent) serverSettings() uplink.ServerSettings {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settings
}

// Assigned implements the uplink's listener.
func (a *Agent) Assigned(as uplink.Assignment) {
	if account := a.accounts[as.Account]; account != nil {
		account.setAssignment(as)
	}
}

// Indexed implements the uplink's listener.
func (a *Agent) Indexed(i uplink.Index) {
	if account := a.accounts[i.Account]; account != nil {
		account.indexes.add(i)
	}
}

// Status is what an agent says of itself to those who ask for its health.
type Status struct {
	Server   string          `json:"server,omitempty"` // that it is or was connected to
	Error    string          `json:"error,omitempty"`  // why it is not connected
	Accounts []AccountStatus `json:"accounts"`
}

// AccountStatus is one account's part of it.
type AccountStatus struct {
	Name  vedette.AccountName `json:"name"`
	State string              `json:"state"`
	Error string              `json:"error,omitempty"`
}

// Status returns how the agent is.
func (a *Agent) Status() Status {
	server, err := a.link.Status()
	s := Status{Server: server, Accounts: []AccountStatus{}}
	if err != nil {
		s.Error = err.Error()
	}
	for _, account := range a.accounts {
		s.Accounts = append(s.Accounts, account.status())
	}
	slices.SortFunc(s.Accounts, func(x, y AccountStatus) int {
		if x.Name < y.Name {
			return -1
		}
		return 1
	})
	return s
}
