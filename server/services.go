package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/server/accountlist"
	"github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/coherence"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/kinds"
	"github.com/vedette-io/vedette/server/membership"
	"github.com/vedette-io/vedette/server/metrics"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/task"
	"github.com/vedette-io/vedette/server/upstream"
)

// services are the parts of a server that need its store, in the order in which they are built: each uses only those
// before it. Changes flow from the agent server through ingest into the store, and operations from the REST APIs through the
// dispatcher to the agent server.
type services struct {
	callersLog  *slog.Logger // anybody who can send requests causes its lines
	server      vedette.ServerID
	store       *store.Store
	members     *membership.Membership // nil if no other server shares the database
	coherence   *coherence.Coherence   // the same
	peers       *peers                 // the same
	accountList *accountlist.Cache
	accounts    *accounts.Accounts
	assignments *assigner.Registry
	firstSyncs  *accounts.FirstSyncs
	hub         *ingest.Hub
	ingest      *ingest.Ingest
	dispatcher  *dispatch.Dispatcher
	operations  *metrics.Dispatcher // the dispatcher, measured
	agentServer *agentserver.Server
	kinds       *kinds.Cache
	tasks       *task.Tasks
	metrics     *accountMetrics
	remote      *upstream.Remote // nil if there is no Clouddriver behind this server
	rest        http.Handler
}

// newServices builds the services, except those that may fail. Nothing runs before their Run, but the assignments must be closed.
func (s *Server) newServices(st *store.Store) *services {
	v := &services{callersLog: logthrottle.Logger(s.log), server: s.cfg.ID, store: st, accountList: accountlist.NewCache(st)}
	v.accounts = accounts.New(s.cfg.Accounts, st, s.log)
	v.assignments = assigner.New(s.cfg.ID, assignment.Config{Balance: &s.cfg.Balance, IsShared: st.IsShared()}, st, v.accounts, s.log)
	v.firstSyncs = accounts.NewFirstSyncs(st, reporter{v.assignments}, s.log)
	v.hub = ingest.NewHub()
	st.OnSettled(v.hub.Publish)
	if st.IsShared() {
		s.shareDatabase(v)
		s.members.Store(v.members)
	}
	v.ingest = ingest.New(s.cfg.Ingest, s.cfg.Metrics.MeasureIngest(st), v.hub, s.log)
	v.dispatcher = dispatch.New(s.cfg.Dispatch, v.assignments, st, v.hub, v.callersLog)
	v.assignments.SetBusy(v.dispatcher.IsBusy)
	if st.IsShared() {
		v.peers = s.newPeers(v)
	}
	v.operations = s.cfg.Metrics.MeasureOperations(v.dispatcher)
	v.agentServer = agentserver.New(s.cfg.AgentServer, v.ingest, v.assignments, v.dispatcher, s.log)
	v.kinds = kinds.New(kinds.Config{Execute: v.operations.Execute})
	v.tasks = s.newTasks(v)
	v.metrics = &accountMetrics{to: &s.cfg.Metrics.Accounts}
	return v
}

// addREST adds what answers requests.
func (s *Server) addREST(v *services) (err error) {
	if v.remote, err = s.newRemote(v); err != nil {
		return err
	}
	v.rest, err = s.newRESTHandler(v)
	return err
}

// newTasks returns the runner of Spinnaker's operations.
func (s *Server) newTasks(v *services) *task.Tasks {
	cfg := s.cfg.Tasks
	cfg.Store = v.store
	cfg.Accounts = v.store
	cfg.Dispatch = v.operations
	cfg.Kinds = v.kinds
	cfg.Log, cfg.OnEnd = v.callersLog, s.cfg.Metrics.TaskEnded
	if v.members == nil {
		return task.New(cfg)
	}
	cfg.Sharing = s.shareTasks(v)
	t := task.New(cfg)
	v.peers.server.SetTasks(t)
	return t
}

// runServices builds the services, continues where the last run ended, and runs them until ctx or the lease ends.
//
//nolint:contextcheck // the contexts end with the lease
func (s *Server) runServices(ctx context.Context, lease *heldLease, st *store.Store) error {
	ctx, cancel := lease.withContext(ctx)
	defer cancel()
	v := s.newServices(st)
	defer v.assignments.Close()
	if err := s.addREST(v); err != nil {
		return err
	}
	if err := s.recoverState(ctx, v); err != nil {
		return err
	}
	sampleServices(s.cfg.Metrics, v)
	if v.peers != nil {
		samplePeers(s.cfg.Metrics, v.peers)
	}
	s.handler.setReady(v.rest)
	s.ready.start()
	s.log.Info("ready", "rest", s.rest.Addr().String(), "grpc", s.grpc.Addr().String())
	// Connected agents stay until tasks and operations have ended, because these reach clusters through them.
	serving, stopServing := context.WithCancel(lease.ctx)
	defer stopServing()
	// Operations of other servers reach agents through this one until these have left.
	relaying, stopRelaying := context.WithCancel(lease.ctx)
	defer stopRelaying()
	// The dispatcher ends after the port for other servers, because it waits for what these have sent.
	dispatching, stopDispatching := context.WithCancel(lease.ctx)
	defer stopDispatching()
	if v.peers == nil {
		context.AfterFunc(serving, stopDispatching)
	}
	parts := []part{
		{"name filters", st.RunNameFilters},
		{"uncertain changes", st.RunSettling},
		{"accounts", v.accounts.Run},
		{"first synchronizations", v.firstSyncs.Run},
		{"assignments", func(context.Context) error { return v.assignments.Run(relaying) }},
		{"fleet metrics", func(ctx context.Context) error { return s.countFleet(ctx, st, v.metrics) }},
		{"kinds", func(ctx context.Context) error { return s.applyKinds(ctx, v.agentServer) }},
		{"tasks", func(ctx context.Context) error {
			defer stopServing()
			timeout, cancel := timeoutAfter(ctx, stopTimeout)
			defer cancel()
			err := v.tasks.Run(ctx)
			if ctx.Err() != nil { // else the tasks failed
				s.requests.drain(timeout) // so that no operation begins any more
				v.dispatcher.Drain(timeout)
			}
			return err
		}},
		{"dispatcher", func(context.Context) error { return v.dispatcher.Run(dispatching) }},
		{"new agents", func(ctx context.Context) error { return acceptAgents(ctx, v.agentServer) }},
		{"agents", func(context.Context) error {
			defer stopRelaying()
			return s.serveAgents(serving, v)
		}},
		{"database check", func(ctx context.Context) error { return s.ready.watchDatabase(ctx, checkDatabase(st)) }},
	}
	if v.remote != nil {
		parts = append(parts, part{"upstream", v.remote.Run})
	}
	if v.members != nil {
		parts = append(parts, part{"servers", v.members.Run},
			part{"drain", func(ctx context.Context) error { return announceDrain(ctx, st, v.assignments) }},
			part{"caches of other servers", v.coherence.Run},
			part{"other servers", func(context.Context) error {
				defer stopDispatching()
				return v.peers.server.Serve(relaying, s.peerListener)
			}},
			part{"connections to other servers", func(context.Context) error { return v.peers.client.Run(relaying) }})
	}
	if v.peers != nil && v.peers.forwarding != nil {
		parts = append(parts, part{"operations of other servers over REST",
			func(context.Context) error { return v.peers.forwarding.Run(relaying) }})
	}
	if s.cfg.Applications != nil {
		parts = append(parts, part{"applications", s.cfg.Applications.Run})
	}
	return runParts(ctx, s.log, parts)
}

// stopTimeout is how long requests and operations that are under way may continue when the server stops. It is that of tasks.
const stopTimeout = 8 * time.Second

// timeoutAfter returns a context that ends some time after ctx.
func timeoutAfter(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(after, cancel) })
	return later, func() { stop(); cancel() }
}

// openStore opens the store. It retries while the database does not answer, and fails if retrying
// would not help.
func (s *Server) openStore(ctx context.Context) (*store.Store, error) {
	var st *store.Store
	err := s.retryWhileUnavailable(ctx, func() (err error) {
		st, err = store.Open(ctx, s.cfg.Store)
		return err
	})
	return st, err
}

// recoverState releases the accounts and ends the operations of the last run. It retries, because
// the database may be unavailable again.
func (s *Server) recoverState(ctx context.Context, v *services) error {
	if v.members != nil {
		if err := s.retryWhileUnavailable(ctx, func() error { return v.members.Read(ctx) }); err != nil {
			return fmt.Errorf("read which servers share the database: %w", err)
		}
	}
	if err := s.retryWhileUnavailable(ctx, func() error { return v.assignments.Recover(ctx) }); err != nil {
		return fmt.Errorf("release the accounts of the last run: %w", err)
	}
	if err := s.retryWhileUnavailable(ctx, func() error { return v.dispatcher.Recover(ctx) }); err != nil {
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
