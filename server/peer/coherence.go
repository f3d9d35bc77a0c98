package peer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/coherence"
	"github.com/vedette-io/vedette/server/peer/peerproto"
)

// Fleet is what a server tells others about its agents.
type Fleet interface {
	// Reports returns what the agents report.
	Reports() []coherence.Report
	// AgentsJSON returns the agents.
	AgentsJSON() ([]byte, error)
}

// coherenceServer answers servers that follow this one.
type coherenceServer struct {
	peerproto.UnimplementedCoherenceServer
	server    *Server
	publisher *coherence.Publisher
	fleet     Fleet
}

// SetCoherence makes the server tell others what p publishes, and about the agents of f. Call it before Serve.
func (s *Server) SetCoherence(p *coherence.Publisher, f Fleet) {
	s.coherence = &coherenceServer{server: s, publisher: p, fleet: f}
}

// Follow implements peerproto.CoherenceServer.
func (c *coherenceServer) Follow(stream grpc.BidiStreamingServer[peerproto.FollowUp, peerproto.FollowDown]) error {
	if _, err := c.server.caller(stream.Context()); err != nil {
		return err
	}
	r := c.publisher.NewReader()
	defer r.Close()
	group, ctx := errgroup.WithContext(stream.Context())
	group.Go(func() error {
		for {
			up, err := stream.Recv()
			if err != nil {
				return err
			}
			if up.GetPing() == 0 {
				return status.Error(codes.InvalidArgument, "a ping has no number")
			}
			r.Ping(coherence.Ping{ID: up.GetPing(), Confirmed: up.GetConfirmed(), WantsChanges: up.GetWantsChanges(),
				WantsReports: up.GetWantsReports()})
		}
	})
	for {
		batch, err := r.Next(ctx, c.fleet.Reports)
		if errors.Is(err, coherence.ErrBehind) {
			return status.Error(codes.ResourceExhausted, err.Error())
		}
		if err != nil {
			return status.FromContextError(err).Err() //nolint:wrapcheck // gRPC needs its own errors
		}
		for _, m := range messagesOf(batch) {
			if err := stream.Send(m); err != nil {
				return err
			}
		}
	}
}

// maxAgentsPiece is the size of a message with agents.
const maxAgentsPiece = 256 << 10

// Agents implements peerproto.CoherenceServer.
func (c *coherenceServer) Agents(_ *peerproto.AgentsRequest, stream grpc.ServerStreamingServer[peerproto.AgentsPiece]) error {
	if _, err := c.server.caller(stream.Context()); err != nil {
		return err
	}
	text, err := c.fleet.AgentsJSON()
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	for len(text) > 0 {
		n := min(len(text), maxAgentsPiece)
		if err := stream.Send(&peerproto.AgentsPiece{Json: text[:n]}); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// followStream implements coherence.Stream.
type followStream struct {
	grpc.BidiStreamingClient[peerproto.FollowUp, peerproto.FollowDown]

	ages []coherence.Age // of a message that continues
}

// Follow opens a stream on which another server tells what it changes. It ends with ctx.
func (c *Client) Follow(ctx context.Context, server vedette.ServerID) (coherence.Stream, error) {
	p, ok := c.cfg.Members.Peer(server)
	if !ok {
		return nil, notRunning(server)
	}
	conn, err := c.conn(p)
	if err != nil {
		return nil, err
	}
	stream, err := peerproto.NewCoherenceClient(conn).Follow(ctx)
	if err != nil {
		return nil, fmt.Errorf("follow server %s: %w", server, err)
	}
	return &followStream{BidiStreamingClient: stream}, nil
}

func notRunning(server vedette.ServerID) error {
	return vedette.Errorf(vedette.Unavailable, "server %s does not run", server)
}

// Ping implements coherence.Stream.
func (s *followStream) Ping(p coherence.Ping) error {
	return s.Send(&peerproto.FollowUp{Ping: p.ID, Confirmed: p.Confirmed, WantsChanges: p.WantsChanges, WantsReports: p.WantsReports})
}

// maxAges bounds the accounts that the agents of one server report.
const maxAges = 200_000

// Receive implements coherence.Stream. Entries are returned as they arrive, because all of a batch together have no limit.
func (s *followStream) Receive() (coherence.Batch, error) {
	m, err := s.Recv()
	if err != nil {
		return coherence.Batch{}, err
	}
	entries, err := toEntries(m.GetEntries())
	if err != nil {
		return coherence.Batch{}, err
	}
	batch := coherence.Batch{Entries: entries}
	if len(s.ages)+len(m.GetAges()) > maxAges {
		return batch, vedette.Errorf(vedette.Invalid, "the other server has agents of more than %d accounts", maxAges)
	}
	s.ages = append(s.ages, toAges(m.GetAges())...)
	if m.GetContinues() {
		return batch, nil
	}
	batch.Position, batch.Pong = m.GetPosition(), m.GetPong()
	if m.GetHasAges() {
		batch.Ages = append([]coherence.Age{}, s.ages...)
	}
	s.ages = nil
	return batch, nil
}

// maxAgentsBytes bounds what another server says about its agents.
const maxAgentsBytes = 64 << 20

// AgentsJSON returns the agents of another server, as its Fleet says.
func (c *Client) AgentsJSON(ctx context.Context, server vedette.ServerID) ([]byte, error) {
	p, ok := c.cfg.Members.Peer(server)
	if !ok {
		return nil, notRunning(server)
	}
	conn, err := c.conn(p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := peerproto.NewCoherenceClient(conn).Agents(ctx, &peerproto.AgentsRequest{})
	if err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "ask server %s for its agents: %w", server, err)
	}
	var text []byte
	for {
		piece, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return text, nil
		case err != nil:
			return nil, vedette.Errorf(vedette.Unavailable, "ask server %s for its agents: %w", server, err)
		case len(text)+len(piece.GetJson()) > maxAgentsBytes:
			return nil, vedette.Errorf(vedette.Unavailable, "server %s says more about its agents than %d bytes", server, maxAgentsBytes)
		}
		text = append(text, piece.GetJson()...)
	}
}
