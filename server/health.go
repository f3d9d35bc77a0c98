package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// readiness says whether a server can serve: it has started, is not going away, and
// its database answers. Whoever balances load asks for it, over REST and over gRPC.
type readiness struct {
	log *slog.Logger

	mu                sync.Mutex
	started           bool
	draining          bool
	databaseReachable bool // answers
	services          []string
	health            *health.Server // gRPC's
}

func newReadiness(log *slog.Logger) *readiness {
	return &readiness{log: log, databaseReachable: true, health: health.NewServer(), services: []string{""}}
}

// register adds gRPC's health service to a server whose other services are there
// already: each of them has the state of the whole.
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

// reason returns why the server is not ready; empty where it is.
func (r *readiness) reason() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reasonLocked()
}

func (r *readiness) reasonLocked() string {
	switch {
	case r.draining:
		return "the server is shutting down"
	case !r.started:
		return "the server is starting"
	case !r.databaseReachable:
		return "the database does not answer; the server's log tells why"
	}
	return ""
}

// How the database is watched. Two failures in a row make a server not ready, one
// success makes it ready again: not to be ready restarts nothing.
const (
	pingInterval = 5 * time.Second
	pingTimeout  = 2 * time.Second
	pingFailures = 2
)

// watchDatabase looks whether the database answers until ctx ends.
func (r *readiness) watchDatabase(ctx context.Context, ping func(context.Context) error) error {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for failures := 0; ; {
		err := pingOnce(ctx, ping)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			failures = 0
		default:
			failures++
		}
		r.setDatabaseReachable(failures < pingFailures, err)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func pingOnce(ctx context.Context, ping func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return ping(ctx)
}

func (r *readiness) setDatabaseReachable(reachable bool, err error) {
	r.update(func() {
		if r.databaseReachable && !reachable {
			r.log.Warn("the server is not ready: the database does not answer", "error", err)
		}
		if !r.databaseReachable && reachable {
			r.log.Info("the server is ready again: the database answers")
		}
		r.databaseReachable = reachable
	})
}
