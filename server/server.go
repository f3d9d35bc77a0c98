// Package server assembles the server. Agents connect to the agent server, their changes go through
// ingest into the store, and the REST APIs answer from the store.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/discover"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/front50"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/membership"
	"github.com/vedette-io/vedette/server/metrics"
	"github.com/vedette-io/vedette/server/peer"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/task"
	"github.com/vedette-io/vedette/server/upstream"
)

// Config configures a server.
type Config struct {
	ID      vedette.ServerID
	Host    string // host name of this machine
	Version string
	// DataDir is where the server keeps files of its own; empty for none.
	DataDir string

	REST    string // address to listen on, host:port
	RESTTLS *tls.Config
	// RESTHosts are additional host names that REST accepts if it listens on a loopback address. IP
	// addresses and localhost are always accepted.
	RESTHosts []string
	// TrustedCallers are services whose users count as clients of their own.
	TrustedCallers readlimit.TrustedCallers
	// AdminToken recognizes the token for operators; nil if there is none.
	AdminToken authorize.Token
	// Memory is how many bytes this process may take; 0 means that nobody knows. Budgets are smaller in a small one.
	Memory int64
	// ReadBytes is the memory that all REST responses may take together; 0 means 64 MiB.
	ReadBytes int64
	// Metrics measures the server. Nil means metrics that nobody reads.
	Metrics *metrics.Metrics
	// MetricsAddress is the address to serve them on, host:port; empty if they are not served.
	MetricsAddress string
	MetricsTLS     *tls.Config // nil means plain HTTP
	// Management configures the port for probes and metrics.
	Management Management
	// ConfigHandler serves the configuration that is in effect, at configreload.Path; nil if it is not shown.
	ConfigHandler http.Handler
	GRPC          string
	GRPCTLS       *tls.Config // nil means plaintext

	// Peers lets other servers share the database; nil if this one uses it alone.
	Peers *PeersConfig

	Store       sqldb.Config
	Accounts    accounts.Config
	Ingest      ingest.Config
	AgentServer agentserver.Config // Listen fills in ServerID and Version
	Balance     assignment.BalanceConfig
	Dispatch    dispatch.Config // Listen fills in Server
	Tasks       task.Config     // Run fills in the store and what else tasks use
	// Fiat configures authorization; nil if there is no Fiat.
	Fiat *authorize.FiatConfig
	// Applications is kept up to date while the server runs; nil if views show all applications.
	Applications *front50.Applications
	// Clouddriver configures Clouddriver's API. Run fills in what it reads from.
	Clouddriver clouddriver.Config
	// Tracing records REST requests and what they cause; nil records nothing.
	Tracing trace.TracerProvider
	// Discovery says where the list of servers comes from that may share the database.
	Discovery discover.Config
	// Upstream configures an existing Clouddriver behind this server; nil if there is none.
	Upstream *upstream.Config
}

// Server is a running server.
type Server struct {
	cfg  Config
	log  *slog.Logger
	rest net.Listener
	grpc net.Listener
	// metricsListener and managementListener are nil if the ports are not configured.
	metricsListener, managementListener net.Listener
	// peerListener and identity are nil if the server uses its database alone.
	peerListener net.Listener
	identity     *peer.Identity
	members      atomic.Pointer[membership.Membership] // nil until the database is open
	handler      *readinessHandler
	agentServer  *deferredAgentServer
	// ready is reported over REST and gRPC.
	ready    *readiness
	requests *activeRequests
	// servers are those that may share the database.
	servers discover.Source
	kinds   chan []string // changed ones that are not in effect yet; holds the last
}

// Listen opens the ports, so that a start fails at once if a port is taken. Nothing is served
// before Run.
func Listen(cfg Config, log *slog.Logger) (*Server, error) {
	if cfg.Metrics == nil {
		cfg.Metrics = metrics.New(cfg.Version)
	}
	cfg.Store.OnTransaction = cfg.Metrics.TransactionEnded
	cfg.Store.OnReplicaRead = cfg.Metrics.ReplicaRead
	cfg.Store.Server, cfg.Store.Host = cfg.ID, cfg.Host
	cfg.AgentServer.ServerID, cfg.AgentServer.Version = cfg.ID, cfg.Version
	cfg.Dispatch.Server, cfg.Tasks.Server = cfg.ID, cfg.ID
	rest, err := listen("REST", cfg.REST)
	if err != nil {
		return nil, err
	}
	rpc, err := listen("gRPC", cfg.GRPC)
	if err != nil {
		return nil, errors.Join(err, rest.Close())
	}
	var metricsListener net.Listener
	if cfg.MetricsAddress != "" {
		metricsListener, err = listen("metrics", cfg.MetricsAddress)
		if err != nil {
			return nil, errors.Join(err, rest.Close(), rpc.Close())
		}
	}
	var managementListener net.Listener
	if cfg.Management.Address != "" {
		managementListener, err = listen("probes and metrics", cfg.Management.Address)
		if err != nil {
			return nil, errors.Join(err, rest.Close(), rpc.Close(), closeListener(metricsListener))
		}
	}
	ready := newReadiness(log)
	cfg.Metrics.OnScrape(func() { cfg.Metrics.State.Ready.Set(ready.value()) })
	handler := newReadinessHandler(log, ready)
	handler.version = cfg.Version
	handler.config = cfg.ConfigHandler
	if cfg.Clouddriver.Reloadable == nil {
		cfg.Clouddriver.Reloadable = &clouddriver.Reloadable{}
	}
	s := &Server{cfg: cfg, log: log, requests: &activeRequests{}, rest: rest, grpc: rpc,
		metricsListener: metricsListener, managementListener: managementListener,
		handler: handler, agentServer: newDeferredAgentServer(), ready: ready, kinds: make(chan []string, 1)}
	if err := s.listenForPeers(); err != nil {
		return nil, errors.Join(err, rest.Close(), rpc.Close(), closeListener(metricsListener), closeListener(managementListener))
	}
	local := discover.Local{Self: s.self, IsTLS: cfg.RESTTLS != nil}
	if cfg.Peers != nil {
		local.Table = s.table
	}
	s.servers = discover.New(cfg.Discovery, local, logthrottle.Logger(log))
	return s, nil
}

func listen(what, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, vedette.Errorf(vedette.Invalid, "listen for %s on %s: %w: stop the program that uses the port, or configure another one",
			what, address, err)
	case err != nil:
		return nil, vedette.Errorf(vedette.Invalid, "listen for %s on %s: %w", what, address, err)
	}
	return l, nil
}

// self returns this server as it shows itself.
func (s *Server) self() discover.Server {
	address, baseURL := discover.AddressURL(s.cfg.RESTTLS != nil, s.rest.Addr())
	return discover.Server{ID: s.cfg.ID, BaseURL: baseURL, Address: address, Ready: s.ready.reason() == "", LastUpdated: time.Now()}
}

// table returns the servers in the database, as they were read last; nil before that. A server that drains is not ready.
func (s *Server) table() []discover.Server {
	members := s.members.Load()
	if members == nil {
		return nil
	}
	var servers []discover.Server
	for _, row := range members.Current() {
		host, _, _ := net.SplitHostPort(row.PeerAddress)
		address, _ := netip.ParseAddr(host) // none if it is a name
		servers = append(servers, discover.Server{ID: row.ID, BaseURL: row.URL, Address: address, Ready: row.State == sqldb.ServerRunning,
			LastUpdated: time.Now().Add(-max(0, row.Now.Sub(row.Renewed)))})
	}
	return servers
}

// REST returns the address of the REST API.
func (s *Server) REST() net.Addr { return s.rest.Addr() }

// GRPC returns the address that agents connect to.
func (s *Server) GRPC() net.Addr { return s.grpc.Addr() }

// Metrics returns the address of the port for metrics, or nil if they are not served.
func (s *Server) Metrics() net.Addr {
	if s.metricsListener == nil {
		return nil
	}
	return s.metricsListener.Addr()
}

// Run serves until ctx ends. While the database does not answer, the health endpoints report it and
// agents wait.
func (s *Server) Run(ctx context.Context) error {
	srv := s.newGRPC()
	defer func() { _ = closeListener(s.peerListener) }() // it may be closed already
	return runParts(ctx, s.log, []part{
		{"readiness", s.ready.run},
		{"REST", s.serveREST},
		{"metrics", s.serveMetrics},
		{"management", s.serveManagement},
		{"discovery of servers", s.servers.Run},
		{"gRPC", func(context.Context) error { return s.serveGRPC(srv) }},
		{"services", func(ctx context.Context) error { defer srv.Stop(); return s.run(ctx) }},
	})
}

// run opens the store, and runs what needs it while this server holds the lease.
func (s *Server) run(ctx context.Context) error {
	st, err := s.openStore(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	lease := s.holdLease(ctx, st)
	err = s.runServices(ctx, lease, st)
	if lost := lease.release(); lost != nil {
		return lost // any other error is a consequence of that
	}
	return err
}
