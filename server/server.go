// Package server assembles the server. Agents connect to the agent server, their changes go through
// ingest into the store, and the REST APIs answer from the store.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/reflection"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/httpserver"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/connlimit"
	"github.com/vedette-io/vedette/server/decodelimit"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/front50"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/membudget"
	"github.com/vedette-io/vedette/server/metrics"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store"
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
	// Memory is how many bytes this process may take; 0 means that nobody knows. Budgets are smaller in a small one.
	Memory int64
	// ReadBytes is the memory that all REST responses may take together; 0 means 64 MiB.
	ReadBytes int64
	// Metrics measures the server. Nil means metrics that nobody reads.
	Metrics *metrics.Metrics
	// MetricsAddress is the address to serve them on, host:port; empty if they are not served.
	MetricsAddress string
	MetricsTLS     *tls.Config // nil means plain HTTP
	// ConfigHandler serves the configuration that is in effect, at configstatus.Path; nil if it is not shown.
	ConfigHandler http.Handler
	GRPC          string
	GRPCTLS       *tls.Config // nil means plaintext

	Store       store.Config
	Accounts    accounts.Config
	Ingest      ingest.Config
	AgentServer agentserver.Config // Run fills in ServerID and Version
	Balance     assignment.BalanceConfig
	Dispatch    dispatch.Config // Run fills in Server
	Tasks       task.Config     // Run fills in the store and what else tasks use
	// Fiat configures authorization; nil if there is no Fiat.
	Fiat *authorize.FiatConfig
	// Applications is kept up to date while the server runs; nil if views show all applications.
	Applications *front50.Applications
	// Clouddriver configures Clouddriver's API. Run fills in what it reads from.
	Clouddriver clouddriver.Config
	// Tracing records REST requests and what they cause; nil records nothing.
	Tracing trace.TracerProvider
	// Upstream configures an existing Clouddriver behind this server; nil if there is none.
	Upstream *upstream.Config
}

// Server is a running server.
type Server struct {
	cfg  Config
	log  *slog.Logger
	rest net.Listener
	grpc net.Listener
	// metricsListener is nil if metrics are not served.
	metricsListener net.Listener
	handler         *readinessHandler
	agentServer     *deferredAgentServer
	// ready is reported over REST and gRPC.
	ready *readiness
	kinds chan []string // changed ones that are not in effect yet; holds the last
}

// Listen opens the ports, so that a start fails at once if a port is taken. Nothing is served
// before Run.
func Listen(cfg Config, log *slog.Logger) (*Server, error) {
	if cfg.Metrics == nil {
		cfg.Metrics = metrics.New(cfg.Version)
	}
	cfg.Store.OnTransaction = cfg.Metrics.TransactionEnded
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
	ready := newReadiness(log)
	cfg.Metrics.OnScrape(func() { cfg.Metrics.State.Ready.Set(ready.value()) })
	handler := newReadinessHandler(log, ready)
	handler.version = cfg.Version
	handler.config = cfg.ConfigHandler
	if cfg.Clouddriver.Live == nil {
		cfg.Clouddriver.Live = &clouddriver.Live{}
	}
	return &Server{cfg: cfg, log: log, rest: rest, grpc: rpc, metricsListener: metricsListener, handler: handler,
		agentServer: newDeferredAgentServer(), ready: ready, kinds: make(chan []string, 1)}, nil
}

func listen(what, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "listen for %s on %s: %w: stop the program that uses the port, or configure another one",
			what, address, err)
	}
	return l, nil
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
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, s.ready.drain)()
	srv := s.newGRPC()
	group.Go(func() error { return s.serveREST(ctx) })
	group.Go(func() error { return s.serveMetrics(ctx) })
	group.Go(func() error { return s.serveGRPC(srv) })
	group.Go(func() error { defer srv.Stop(); return s.run(ctx) })
	return group.Wait()
}

// run opens the store, and serves while this server holds the lease.
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

// runServices runs everything that needs the store, in the order of the flow of changes.
//
//nolint:contextcheck // the context ends with the lease
func (s *Server) runServices(ctx context.Context, lease *heldLease, st *store.Store) error {
	ctx, cancel := lease.withContext(ctx)
	defer cancel()
	accountRules := accounts.New(s.cfg.Accounts, st, s.log)
	assignments := assignment.New(s.cfg.ID, st, accountRules, s.log)
	hub := ingest.NewHub()
	ingester := ingest.New(s.cfg.Ingest, s.cfg.Metrics.MeasureIngest(st), hub, s.log)
	s.cfg.AgentServer.ServerID, s.cfg.AgentServer.Version = s.cfg.ID, s.cfg.Version
	s.cfg.Dispatch.Server = s.cfg.ID
	callersLog := logthrottle.Logger(s.log) // anybody who can send requests causes these lines
	dispatcher := dispatch.New(s.cfg.Dispatch, assignments, st, hub, callersLog)
	if err := s.recoverState(ctx, assignments, dispatcher); err != nil {
		return err
	}
	balancer := assignment.NewBalancer(s.cfg.Balance, assignments, st, dispatcher.IsBusy)
	agentServer := agentserver.New(s.cfg.AgentServer, ingester, assignments, dispatcher, s.log)
	measuredDispatcher := s.cfg.Metrics.MeasureOperations(dispatcher)
	tasks := s.newTasks(st, measuredDispatcher, callersLog)
	remote, err := s.newRemote(st, reporter{assignments}, callersLog)
	if err != nil {
		return err
	}
	admin := accountAdmin{assignments, accountRules}
	handler, err := s.newRESTHandler(st, hub, admin, agentServer, measuredDispatcher, tasks, remote, callersLog)
	if err != nil {
		return err
	}
	eachAccount := &accountMetrics{to: &s.cfg.Metrics.Accounts}
	sampleServices(s.cfg.Metrics, eachAccount, st, assignments, ingester, tasks)
	s.handler.setReady(handler)
	s.ready.start()
	s.log.Info("ready", "rest", s.rest.Addr().String(), "grpc", s.grpc.Addr().String())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return st.RunNameFilters(ctx) })
	group.Go(func() error { return accountRules.Run(ctx) })
	group.Go(func() error { return accounts.NewFirstSyncs(st, reporter{assignments}, s.log).Run(ctx) })
	group.Go(func() error { return assignments.Run(ctx) })
	group.Go(func() error { return balancer.Run(ctx) })
	group.Go(func() error { return s.countFleet(ctx, st, eachAccount) })
	group.Go(func() error { return s.applyKinds(ctx, agentServer) })
	if remote != nil {
		group.Go(func() error { return remote.Run(ctx) })
	}
	if s.cfg.Applications != nil {
		group.Go(func() error { return s.cfg.Applications.Run(ctx) })
	}
	// New agents are rejected at once and connect elsewhere. Connected agents stay until the tasks
	// have ended, because tasks reach clusters through them.
	stopDrain := context.AfterFunc(ctx, agentServer.StopAccepting)
	defer stopDrain()
	serveCtx, stopServing := context.WithCancel(lease.ctx)
	group.Go(func() error { defer stopServing(); return tasks.Run(ctx) })
	group.Go(func() error { return dispatcher.Run(serveCtx) })
	group.Go(func() error { return s.serveAgents(serveCtx, agentServer) })
	group.Go(func() error { return s.ready.watchDatabase(ctx, st.Ping) })
	return group.Wait()
}

// openStore opens the store. It retries while the database does not answer, and fails if retrying
// would not help.
func (s *Server) openStore(ctx context.Context) (*store.Store, error) {
	var st *store.Store
	cfg := s.cfg.Store
	cfg.Server, cfg.Host = s.cfg.ID, s.cfg.Host
	err := s.retryWhileUnavailable(ctx, func() (err error) {
		st, err = store.Open(ctx, cfg)
		return err
	})
	return st, err
}

// recoverState releases the accounts and ends the operations of the last run. It retries, because
// the database may be unavailable again.
func (s *Server) recoverState(ctx context.Context, assignments *assignment.Registry, dispatcher *dispatch.Dispatcher) error {
	if err := s.retryWhileUnavailable(ctx, func() error { return assignments.Recover(ctx) }); err != nil {
		return fmt.Errorf("release the accounts of the last run: %w", err)
	}
	if err := s.retryWhileUnavailable(ctx, func() error { return dispatcher.Recover(ctx) }); err != nil {
		return fmt.Errorf("end the operations of the last run: %w", err)
	}
	return nil
}

// retryWhileUnavailable calls do until it succeeds or fails with an error other than
// vedette.Unavailable.
func (s *Server) retryWhileUnavailable(ctx context.Context, do func() error) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 500*time.Millisecond, 3*time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := do()
		if err != nil && vedette.KindOf(err) != vedette.Unavailable {
			return struct{}{}, backoff.Permanent(err)
		}
		if err != nil {
			s.handler.setUnavailable(err)
			s.log.Warn("retrying: database does not answer", "error", err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(0))
	return err
}

func (s *Server) serveREST(ctx context.Context) error {
	answers := readlimit.New(readlimit.Config{Bytes: answerBytes, UserShare: answerBytes / 2})
	handler := limitBodies(newBodyLimiter(s.cfg.Memory), decodelimit.New(s.cfg.Memory, nil).Handler(answers.HoldAnswers(s.handler)))
	listener := connlimit.New(s.rest, connlimit.Config{HeaderBytes: membudget.Fit(headerBytes, s.cfg.Memory), Refuse: refuseConnection,
		Log: logthrottle.Logger(s.log)})
	srv := newRESTServer(middleware.Measure(listener.Handler(s.withMiddleware(handler)), s.cfg.Metrics.RequestEnded))
	srv.ConnContext = listener.ConnContext
	srv.TLSConfig = s.cfg.RESTTLS
	srv.BaseContext = func(net.Listener) context.Context { return ctx }
	if err := httpserver.Serve(ctx, srv, listener, 5*time.Second, s.log); err != nil {
		return fmt.Errorf("serve REST on %s: %w", s.rest.Addr(), err)
	}
	return nil
}

// headerBytes limits the memory of the headers of all requests, in a process with enough memory.
const headerBytes = 64 << 20

// answerBytes limits the memory of clusters' answers to operations until they are written. The largest one
// has 48 MiB, which is what one source may have.
const answerBytes = 128 << 20

// refuseConnection answers a request for which there is no connection, or no memory for its headers.
func refuseConnection(w http.ResponseWriter, r *http.Request, message string) {
	writeRejection(w, r, http.StatusServiceUnavailable, vedette.Unavailable, message)
}

func newRESTServer(handler http.Handler) *http.Server {
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeaderBytes,
		Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true) // no HTTP/2: readers' deadlines and limits are those of a connection
	return srv
}

// withMiddleware adds what is done with each REST request, from the outside to the inside.
func (s *Server) withMiddleware(handler http.Handler) http.Handler {
	handler = limitURLs(rejectAmbiguousIdentity(s.cfg.TrustedCallers.Handler(handler)))
	handler = hostGuard(handler, s.rest.Addr(), s.cfg.RESTHosts)
	if s.cfg.Tracing != nil {
		handler = middleware.Trace(handler, s.cfg.Tracing)
	}
	return middleware.Deadlines(middleware.RequestID(handler, s.log))
}

func (s *Server) credentials() credentials.TransportCredentials {
	refusals := newRefusalLog(s.log)
	if s.cfg.GRPCTLS == nil {
		return loggingCredentials{insecure.NewCredentials(), refusals, true}
	}
	return loggingCredentials{credentials.NewTLS(s.cfg.GRPCTLS), refusals, false}
}

// newGRPC returns the gRPC server, which reports that it is not ready.
func (s *Server) newGRPC() *grpc.Server {
	srv := grpc.NewServer(append(agentserver.ServerOptions(), grpc.Creds(s.credentials()))...)
	s.agentServer.register(srv)
	s.ready.register(srv)
	reflection.Register(srv)
	return srv
}

// serveGRPC serves until srv is stopped.
func (s *Server) serveGRPC(srv *grpc.Server) error {
	if err := srv.Serve(s.grpc); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve agents on %s: %w", s.grpc.Addr(), err)
	}
	return nil
}

// serveAgents accepts agents. When ctx ends it asks them to leave, so that they connect elsewhere
// before their connection breaks.
func (s *Server) serveAgents(ctx context.Context, agentServer *agentserver.Server) error {
	s.agentServer.bind(agentServer.Register)
	<-ctx.Done()
	drainCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	agentServer.Drain(drainCtx, "the server is stopping")
	return nil
}
