package server

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// readiness says whether a server can serve: it has started, it is not stopping, and its database
// answers and takes writes. Load balancers ask for it over REST and gRPC.
type readiness struct {
	log *slog.Logger

	mu              sync.Mutex
	started         bool
	draining        bool
	databaseProblem string // why the database cannot be used; empty if it can
	services        []string
	health          *health.Server // the gRPC health service
}

func newReadiness(log *slog.Logger) *readiness {
	return &readiness{log: log, health: health.NewServer(), services: []string{""}}
}

// register adds the gRPC health service to a server whose other services are registered already.
// Each of them has the state of the whole server.
func (r *readiness) register(srv *grpc.Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range srv.GetServiceInfo() {
		r.services = append(r.services, name)
	}
	healthpb.RegisterHealthServer(srv, r.health)
	r.publishLocked()
}

func (r *readiness) start() { r.update(func() { r.started = true }) }

// run drains the server when ctx ends.
func (r *readiness) run(ctx context.Context) error {
	<-ctx.Done()
	r.drain()
	return nil
}

func (r *readiness) drain() { r.update(func() { r.draining = true }) }

func (r *readiness) update(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	r.publishLocked()
}

func (r *readiness) publishLocked() {
	state := healthpb.HealthCheckResponse_SERVING
	if r.reasonLocked() != "" {
		state = healthpb.HealthCheckResponse_NOT_SERVING
	}
	for _, name := range r.services {
		r.health.SetServingStatus(name, state)
	}
}

// reason returns why the server is not ready, or "" if it is ready.
func (r *readiness) reason() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reasonLocked()
}

// value returns 1 if the server is ready, and otherwise 0.
func (r *readiness) value() float64 {
	if r.reason() == "" {
		return 1
	}
	return 0
}

func (r *readiness) reasonLocked() string {
	switch {
	case r.draining:
		return "the server is stopping"
	case !r.started:
		return "the server is starting"
	}
	return r.databaseProblem
}

// Limits of the database check. Two failures in a row make a server not ready and one success makes
// it ready again, because a server that is not ready for a moment costs little: it is not
// restarted.
const (
	pingInterval = 5 * time.Second
	pingTimeout  = 2 * time.Second
	pingFailures = 2
)

// checkDatabase returns an error if the database does not answer, or takes no writes.
func checkDatabase(st *store.Store) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := st.Ping(ctx); err != nil {
			return err
		}
		return st.CheckWritable(ctx)
	}
}

// watchDatabase checks whether the database can be used, until ctx ends.
func (r *readiness) watchDatabase(ctx context.Context, check func(context.Context) error) error {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for failures := 0; ; {
		err := checkOnce(ctx, check)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			failures = 0
			r.setDatabaseProblem("", nil)
		default:
			if failures++; failures >= pingFailures {
				r.setDatabaseProblem(databaseProblem(err), err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func checkOnce(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return check(ctx)
}

// databaseProblem returns what an error of checkDatabase says to those who ask whether the server is ready.
func databaseProblem(err error) string {
	return cmp.Or(sqldb.ProblemOf(err).Message(), "the database does not answer") + ": see the server's log"
}

func (r *readiness) setDatabaseProblem(problem string, err error) {
	r.update(func() {
		if problem != "" && problem != r.databaseProblem {
			r.log.Warn("server not ready: the database cannot be used", "reason", problem, "error", err)
		}
		if problem == "" && r.databaseProblem != "" {
			r.log.Info("server ready again: the database can be used")
		}
		r.databaseProblem = problem
	})
}
