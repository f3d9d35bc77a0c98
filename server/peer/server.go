package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/peer/peerproto"
	"github.com/vedette-io/vedette/wire"
)

// Limits of a connection between servers.
const (
	maxMessage = 1 << 20  // bytes of a message; a part of an operation or an outcome has 64 KiB
	maxStreams = 2048     // of a connection: operations under way and logs that are followed
	maxHeaders = 16 << 10 // bytes of a call
	// streamWindow is what one stream may have in transit. A reader who stops reads of a log holds so many bytes.
	streamWindow = 64 << 10
	// keepaliveTime is after what silence a connection is probed. A server that has stopped leaves the table sooner.
	keepaliveTime = 10 * time.Second
	// keepaliveTimeout is how long the answer to a probe may take.
	keepaliveTimeout = 5 * time.Second
)

// dispatcher relays operations to the agents of this server, and knows those that it has accepted.
type dispatcher interface {
	Relay(ctx context.Context, r dispatch.RelayRequest) (*dispatch.Relay, error)
	Ended(ctx context.Context, id vedette.OperationID) error
}

// Server answers other servers.
type Server struct {
	peerproto.UnimplementedPeersServer
	cfg         Config
	dispatch    dispatcher
	log         *slog.Logger
	connections *connections
	coherence   *coherenceServer   // nil if nothing is published
	assignments *assignmentsServer // nil if nothing is told of agents
	tasks       *taskServer        // nil if no tasks run here
}

// NewServer returns a Server that passes operations to the agents of d.
func NewServer(cfg Config, d dispatcher, log *slog.Logger) *Server {
	cfg.defaults()
	return &Server{cfg: cfg, dispatch: d, log: log, connections: newConnections()}
}

// Serve answers on a listener until ctx ends, and closes it.
func (s *Server) Serve(ctx context.Context, on net.Listener) error {
	srv := grpc.NewServer(grpc.Creds(newServerCredentials(s.cfg.Identity, s.cfg.Members, s.connections, s.log)),
		grpc.ForceServerCodecV2(wire.Codec()),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxStreams), grpc.MaxHeaderListSize(maxHeaders),
		grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(maxMessage),
		grpc.ConnectionTimeout(s.cfg.ConnectTimeout),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveTime / 2, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}))
	peerproto.RegisterPeersServer(srv, s)
	if s.coherence != nil {
		peerproto.RegisterCoherenceServer(srv, s.coherence)
	}
	if s.assignments != nil {
		peerproto.RegisterAssignmentsServer(srv, s.assignments)
	}
	if s.tasks != nil {
		peerproto.RegisterTasksServer(srv, s.tasks)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.closeEvicted(ctx)
		srv.Stop()
	}()
	err := srv.Serve(listener{on, s.connections})
	<-stopped
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) && ctx.Err() == nil {
		return fmt.Errorf("serve other servers on %s: %w", on.Addr(), err)
	}
	return nil
}

// closeEvicted closes connections whose peers do not run any more, until ctx ends.
func (s *Server) closeEvicted(ctx context.Context) {
	tick := time.NewTicker(s.cfg.CheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.connections.closeEvicted(s.cfg.Members)
		}
	}
}

// Connections returns how many connections other servers have to this one.
func (s *Server) Connections() int { return s.connections.count() }

var errEvicted = status.Error(codes.PermissionDenied, "this process is not in the table of servers any more")

// caller returns the server that calls, if it still runs.
func (s *Server) caller(ctx context.Context) (Peer, error) {
	p, _ := grpcpeer.FromContext(ctx)
	if p == nil {
		return Peer{}, errEvicted
	}
	info, ok := p.AuthInfo.(authInfo)
	if !ok || !runs(s.cfg.Members, info.peer) {
		return Peer{}, errEvicted
	}
	return info.peer, nil
}

// AwaitEnd implements peerproto.PeersServer.
func (s *Server) AwaitEnd(ctx context.Context, r *peerproto.AwaitEndRequest) (*peerproto.AwaitEndResponse, error) {
	if _, err := s.caller(ctx); err != nil {
		return nil, err
	}
	if err := s.dispatch.Ended(ctx, vedette.OperationID(r.GetOperation())); err != nil {
		if vedette.KindOf(err) == vedette.NotFound {
			return nil, status.Error(codes.NotFound, err.Error())
		}
		return nil, endOf(ctx)
	}
	return &peerproto.AwaitEndResponse{}, nil
}
