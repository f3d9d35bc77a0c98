// Package agent connects the parts of the agent. Watchers report the changes of each
// account's cluster, redact removes secrets from them, the outbox keeps them until they are
// acknowledged, and the uplink sends them to the server. Operations come back over the
// uplink and are executed in the clusters.
package agent

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/executor"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/metrics"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/agent/watch/queue"
	"github.com/vedette-io/vedette/internal/admin"
	"github.com/vedette-io/vedette/internal/configreload"
)

// Config configures an Agent.
type Config struct {
	Uplink   uplink.Config
	Accounts []Account
	Redact   redact.Config
	// OutboxBytes bounds the unacknowledged changes of all accounts together. Zero means
	// 8 MiB.
	OutboxBytes int
	Watch       watch.Config
	// ConnectOptions configures the connections to clusters.
	ConnectOptions kube.Options
	// RereadInterval is how often kubeconfigs and certificates are checked for changes. Zero
	// means 30 s.
	RereadInterval time.Duration
	Operate        operate.Config // Coverage, and the redactor and log of requests, are set for each account
	Executor       executor.Config
	// Admin decides who may use the paths for operators of Handler.
	Admin admin.Guard
	// Tracing records operations that the server traces; nil records nothing.
	Tracing trace.TracerProvider
	// Metrics measures the agent. Nil means metrics that nobody reads.
	Metrics *metrics.Metrics
}

// Account is one cluster and the part of it to report.
type Account struct {
	Name       vedette.AccountName
	Access     kube.Access
	Selection  watch.Selection
	Properties vedette.Properties
}

// Agent watches clusters and executes operations. It is safe for concurrent use.
type Agent struct {
	cfg      Config
	box      *outbox.Box
	link     *uplink.Uplink
	executor *executor.Executor
	log      *slog.Logger

	accounts       accountSet
	newAccounts    chan []Account // of SetAccounts; unbuffered
	sharedRedactor sharedRedactor
	liveness       liveness
	files          fileCondition
	config         atomic.Pointer[configreload.Status] // nil before SetConfigStatus

	mu       sync.Mutex
	settings uplink.ServerSettings
}

// New returns an agent. It does not dial before Run.
func New(cfg Config, log *slog.Logger) *Agent {
	if cfg.OutboxBytes == 0 {
		cfg.OutboxBytes = 8 << 20
	}
	if cfg.RereadInterval == 0 {
		cfg.RereadInterval = 30 * time.Second
	}
	if cfg.Watch.Limiter == nil {
		cfg.Watch.Limiter = watch.NewLimiter(queue.Budget{})
	}
	if cfg.Watch.Log == nil {
		cfg.Watch.Log = log
	}
	if cfg.Metrics == nil {
		cfg.Metrics = metrics.New(cfg.Uplink.Version)
	}
	if cfg.ConnectOptions.ReadMemory == nil {
		cfg.ConnectOptions.ReadMemory = kube.NewReadMemory()
	}
	cfg.Uplink.Observer, cfg.ConnectOptions.OnResponse = cfg.Metrics, cfg.Metrics.RequestAnswered
	a := &Agent{cfg: cfg, box: outbox.New(cfg.OutboxBytes), log: log,
		accounts: accountSet{byName: map[vedette.AccountName]*account{}}, newAccounts: make(chan []Account)}
	if cfg.Executor.Memory == nil {
		cfg.Executor.Memory = newOperationMemory()
	}
	a.executor = executor.New(cfg.Executor, a.executeMeasured, func(out vedette.Outcome) { a.link.Answer(out) })
	cfg.Uplink.Freshness, cfg.Uplink.Prove = a.freshness, a.prove
	a.link = uplink.New(cfg.Uplink, a.box, a, boundExecutor{a.executor, &a.accounts}, log)
	for _, account := range cfg.Accounts {
		a.accounts.put(newAccount(a, account))
	}
	cfg.Metrics.OnScrape(a.sampleMetrics)
	return a
}

// Run serves all accounts until ctx ends. The agent then gives up its accounts, so that it gets no further operations. Those that it has
// may end, for which the rest of the agent continues.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.cfg.Redact.Validate(); err != nil {
		return err
	}
	group, stopping := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(stopping, a.giveUpAccounts)()
	group.Go(func() error { defer stop(); return a.executor.Run(stopping) })
	group.Go(func() error { return a.runLivenessLoop(ctx) })
	group.Go(func() error { return a.link.Run(ctx) })
	group.Go(func() error { return a.runAccounts(ctx) })
	return group.Wait()
}

// giveUpAccounts lets the server give the accounts, and operations on them, to other agents.
func (a *Agent) giveUpAccounts() {
	for _, account := range a.accounts.all() {
		a.link.Deregister(account.cfg.Name)
	}
}

// RunningOperations returns how many operations have been received and have not ended.
func (a *Agent) RunningOperations() int { return a.executor.Running() }

// Connected implements the uplink's handler.
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

// Assigned implements the uplink's handler.
func (a *Agent) Assigned(as uplink.Assignment) {
	a.box.Recall(as.Account, as.Term)
	if account := a.accounts.get(as.Account); account != nil {
		account.setAssignment(as)
	}
}

// Indexed implements the uplink's handler.
func (a *Agent) Indexed(i uplink.Index) {
	if account := a.accounts.get(i.Account); account != nil {
		account.indexes.add(i)
	}
}

// VerifyAnswered implements the uplink's handler.
func (a *Agent) VerifyAnswered(answer uplink.VerifyAnswer) {
	if account := a.accounts.get(answer.Account); account != nil {
		account.comparisons.answer(answer)
	}
}

// Status is the part of the health of an agent that only trusted callers see.
type Status struct {
	Server   string               `json:"server,omitempty"` // the current or last server
	Error    string               `json:"error,omitempty"`  // why the agent is not connected
	Accounts []AccountStatus      `json:"accounts"`
	Config   *configreload.Status `json:"config,omitempty"` // nil if nobody has set it
}

// AccountStatus is the state of one account.
type AccountStatus struct {
	Name  vedette.AccountName `json:"name"`
	State string              `json:"state"`
	Error string              `json:"error,omitempty"`
	// Credentials says who issues the account's credentials, if they are neither in its kubeconfig nor in files that it names.
	Credentials string `json:"credentials,omitempty"`

	waiting bool // Error says why the account waits for others, and nothing is wrong
}

// Status returns the state of the connection and of all accounts, sorted by name.
func (a *Agent) Status() Status {
	server, err := a.link.Status()
	s := Status{Server: server, Accounts: []AccountStatus{}, Config: a.config.Load()}
	if err != nil {
		s.Error = err.Error()
	}
	for _, account := range a.accounts.all() {
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
