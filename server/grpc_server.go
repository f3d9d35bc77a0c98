package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vedette-io/vedette/server/agentserver"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/reflection"
)

func (s *Server) credentials() credentials.TransportCredentials {
	rejections := newRejectionLog(s.log)
	if s.cfg.GRPCTLS == nil {
		return loggingCredentials{insecure.NewCredentials(), rejections, true}
	}
	return loggingCredentials{credentials.NewTLS(s.cfg.GRPCTLS), rejections, false}
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

// acceptAgents rejects new agents at once when ctx ends, so that they connect elsewhere.
func acceptAgents(ctx context.Context, agentServer *agentserver.Server) error {
	<-ctx.Done()
	agentServer.StopAccepting()
	return nil
}

const (
	// drainTimeout is how long agents may take to connect to another server: they are asked one after the other, and some are refused at
	// first, or wait for operations that came over this server.
	drainTimeout = agentserver.DrainSpread + 2*time.Second
	// aloneDrainTimeout is how long a server without others waits until its agents know that it stops. They would stay until it ends.
	aloneDrainTimeout = 200 * time.Millisecond
)

// serveAgents accepts agents. When ctx ends it asks them to leave, so that they connect elsewhere
// before their connection breaks.
func (s *Server) serveAgents(ctx context.Context, v *services) error {
	s.agentServer.bind(v.agentServer.Register)
	<-ctx.Done()
	timeout := aloneDrainTimeout
	if v.members != nil && v.members.HasOthers() {
		timeout = drainTimeout
	}
	v.awaitOffers(context.WithoutCancel(ctx))
	drainCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	v.agentServer.Drain(drainCtx, "the server is stopping")
	return nil
}

// offersTimeout is how long other servers may take to acquire the accounts that they are offered before agents are asked to leave.
const offersTimeout = time.Second

func (v *services) awaitOffers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, offersTimeout)
	defer cancel()
	v.assignments.AwaitOffers(ctx)
}
