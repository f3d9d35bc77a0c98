package discover

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Source keeps a list of servers up to date. Its methods may be called from several goroutines.
type Source interface {
	// Run keeps the list up to date until ctx ends, and returns nil then. It fails if the list cannot become known without somebody
	// who changes the configuration or grants rights.
	Run(ctx context.Context) error
	// Servers returns a snapshot in the order of IDs, which the caller owns. Nil means that no list is known yet; an empty one that
	// there are no servers.
	Servers() []Server
	// Changed returns a channel that is closed when the list differs from what Servers returns after this call. Times alone are no
	// difference.
	Changed() <-chan struct{}
}

// Mode is where the list comes from.
type Mode string

// Modes. The zero value is Local.
const (
	ModeLocal      Mode = "local"
	ModeKubernetes Mode = "kubernetes"
	ModeSQL        Mode = "sql"
)

// Config configures a source.
type Config struct {
	Mode Mode
	// Kubernetes is for ModeKubernetes. New fills in Fallback, IsTLS and Log.
	Kubernetes KubernetesConfig
}

// Local is what New needs to know of this server.
type Local struct {
	// Self returns this server, at any time.
	Self func() Server
	// IsTLS reports whether servers serve REST with TLS.
	IsTLS bool
	// Table returns the servers in the database, from memory; nil while they are not known. If Table is nil, only this one is there. Others
	// that a cluster lists are left out.
	Table func() []Server
}

// New returns a source.
func New(cfg Config, local Local, log *slog.Logger) Source {
	if local.Table == nil {
		self := local.Self
		local.Table = func() []Server { return []Server{self()} }
	}
	switch cfg.Mode {
	case ModeKubernetes:
		kubernetes := cfg.Kubernetes
		kubernetes.Fallback, kubernetes.IsTLS = local.Table, local.IsTLS
		kubernetes.Log = log
		return newSharing(NewKubernetes(kubernetes), local.Table, log)
	case ModeSQL:
		return NewSQL(local.Table)
	default:
		return NewLocal(local.Self)
	}
}

// announcer tells any number of listeners of changes. The zero value is ready.
type announcer struct {
	mu   sync.Mutex
	next chan struct{}
}

func (a *announcer) channel() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == nil {
		a.next = make(chan struct{})
	}
	return a.next
}

// announce closes the channel, so that listeners ask for the next one.
func (a *announcer) announce() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next != nil {
		close(a.next)
		a.next = nil
	}
}

// polled is a source whose list another part of the process keeps in memory.
type polled struct {
	list func() []Server
	announcer
}

// pollInterval is how late listeners may learn of a change.
const pollInterval = time.Second

// NewLocal returns a source with this server only.
func NewLocal(self func() Server) Source {
	return &polled{list: func() []Server { return []Server{self()} }}
}

// NewSQL returns a source with the servers that table returns, which must not wait: it is called for each request, and once a second.
func NewSQL(table func() []Server) Source { return &polled{list: table} }

// Servers implements Source.
func (p *polled) Servers() []Server {
	servers := p.list()
	if servers == nil {
		return nil
	}
	return sorted(servers)
}

// Changed implements Source.
func (p *polled) Changed() <-chan struct{} { return p.channel() }

// Run implements Source.
func (p *polled) Run(ctx context.Context) error {
	poll(ctx, p.Servers, p.announce)
	return nil
}

// poll announces changes of a list until ctx ends.
func poll(ctx context.Context, list func() []Server, announce func()) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for last := list(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		servers := list()
		if (servers == nil) != (last == nil) || !isSame(servers, last) {
			announce()
		}
		last = servers
	}
}
