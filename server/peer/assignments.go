package peer

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/peer/peerproto"
)

// assignmentsServer tells servers about the agents of this one.
type assignmentsServer struct {
	peerproto.UnimplementedAssignmentsServer
	server      *Server
	assignments *assigner.Registry
}

// SetAssignments makes the server tell others about the agents of r. Call it before Serve.
func (s *Server) SetAssignments(r *assigner.Registry) {
	s.assignments = &assignmentsServer{server: s, assignments: r}
}

// Listen implements peerproto.AssignmentsServer.
func (a *assignmentsServer) Listen(_ *peerproto.ListenRequest, stream grpc.ServerStreamingServer[peerproto.Update]) error {
	caller, err := a.server.caller(stream.Context())
	if err != nil {
		return err
	}
	l := a.assignments.Listen(caller.ID)
	defer l.Close()
	for {
		update, err := l.Next(stream.Context())
		if err != nil {
			return status.Error(codes.Aborted, err.Error())
		}
		for _, m := range fromUpdate(update) {
			if err := stream.Send(m); err != nil {
				return err
			}
		}
	}
}

// Listen opens a stream on which another server tells about its agents. It ends with ctx.
func (c *Client) Listen(ctx context.Context, server vedette.ServerID) (next func() (assigner.Update, error), err error) {
	p, ok := c.cfg.Members.Peer(server)
	if !ok {
		return nil, notRunning(server)
	}
	conn, err := c.conn(p)
	if err != nil {
		return nil, err
	}
	stream, err := peerproto.NewAssignmentsClient(conn).Listen(ctx, &peerproto.ListenRequest{})
	if err != nil {
		return nil, fmt.Errorf("listen to server %s: %w", server, err)
	}
	return func() (assigner.Update, error) {
		m, err := stream.Recv()
		if err != nil {
			return assigner.Update{}, fmt.Errorf("listen to server %s: %w", server, err)
		}
		return toUpdate(m)
	}, nil
}
