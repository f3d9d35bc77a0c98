package peer

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/peer/peerproto"
)

// search implements dispatch.Search.
type search struct {
	client *Client
	wanted dispatch.Wanted
	found  chan dispatch.RemoteAgent
	missed chan struct{}

	mu       sync.Mutex
	obstacle string
}

// Find implements dispatch.Remote.
func (c *Client) Find(ctx context.Context, w dispatch.Wanted) dispatch.Search {
	s := &search{client: c, wanted: w, found: make(chan dispatch.RemoteAgent), missed: make(chan struct{})}
	go s.run(ctx)
	return s
}

// Found implements dispatch.Search.
func (s *search) Found() <-chan dispatch.RemoteAgent { return s.found }

// Missed implements dispatch.Search.
func (s *search) Missed() <-chan struct{} { return s.missed }

// Obstacle implements dispatch.Search.
func (s *search) Obstacle() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.obstacle
}

func (s *search) setObstacle(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.obstacle = text
}

// run asks one server after the other, until an agent is found and taken, or ctx ends.
func (s *search) run(ctx context.Context) {
	miss := sync.OnceFunc(func() { close(s.missed) })
	if s.wanted.Attempts > 0 {
		miss()
		if pause(ctx, s.wanted.Attempts) {
			return
		}
	}
	for attempt := 0; ; attempt++ {
		agent, err := s.try(ctx)
		if agent != nil {
			select {
			case s.found <- agent:
			case <-ctx.Done():
				agent.Close()
			}
			return
		}
		s.setObstacle(obstacleOf(err))
		miss()
		if pause(ctx, attempt) {
			return
		}
	}
}

// errNoServer means that the account's row names no other server.
var errNoServer = errors.New("no other server has an agent of the account")

// try asks the server that the account is at. A server that does not have it is forgotten, so that the row is read anew.
func (s *search) try(ctx context.Context) (*remoteAgent, error) {
	account := s.wanted.Account
	server, err := s.client.locator.server(ctx, account)
	if err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the database did not say which server it is connected to: %w", err)
	}
	if server == "" || server == s.client.cfg.Self { // an agent that has just left this server
		s.client.locator.forget(account, server)
		return nil, errNoServer
	}
	p, ok := s.client.cfg.Members.Peer(server)
	if !ok {
		s.client.locator.forget(account, server)
		return nil, vedette.Errorf(vedette.Unavailable, "server %s, to which it was connected, does not run any more, and it has not connected to another yet", server)
	}
	agent, err := s.client.open(ctx, p, s.wanted)
	if err != nil {
		s.client.locator.forget(account, server)
	}
	return agent, err
}

// obstacleOf returns what users are told about an error of try.
func obstacleOf(err error) string {
	if errors.Is(err, errNoServer) {
		return ""
	}
	if vedette.KindOf(err) != "" {
		return err.Error()
	}
	return "internal error, see the server's log"
}

// open opens a stream for an operation to the server of its account's agent.
func (c *Client) open(ctx context.Context, p Peer, w dispatch.Wanted) (*remoteAgent, error) {
	client, err := c.dial(p)
	if err != nil {
		return nil, unreachable(p, err)
	}
	streamCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stopTimeout := afterTimeout(ctx, c.cfg.ConnectTimeout, cancel)
	defer stopTimeout()
	stream, err := client.Relay(streamCtx)
	if err != nil {
		err = causeOf(streamCtx, err)
		cancel(nil)
		return nil, unreachable(p, err)
	}
	a := &remoteAgent{client: c, peer: p, stream: stream, cancel: cancel, wanted: w, events: make(chan dispatch.RemoteEvent, 1),
		ready: make(chan struct{}, 1)}
	if err := a.handshake(streamCtx); err != nil {
		cancel(nil)
		return nil, err
	}
	if !stopTimeout() {
		return nil, unreachable(p, context.Cause(streamCtx)) // it was canceled just now
	}
	go a.send(streamCtx)
	go a.receive(streamCtx)
	return a, nil
}

// causeOf returns why a call was canceled, or its error.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func unreachable(p Peer, err error) error {
	return vedette.Errorf(vedette.Unavailable, "server %s, to which it is connected, cannot be reached at %s: %s", p.ID, p.Address, status.Convert(err).Message())
}

func unsent(p Peer, u *peerproto.Unsent) error {
	if u.GetReason() == peerproto.Unsent_REASON_NOT_HERE {
		return vedette.Errorf(vedette.Unavailable, "server %s, to which it was connected, does not have it any more", p.ID)
	}
	return vedette.Errorf(vedette.Unavailable, "server %s, to which it is connected, did not take the operation: %s", p.ID, vedette.CleanText(u.GetMessage(), maxReason))
}

// maxReason is the maximum length in bytes of what another server says to users.
const maxReason = 1000

var errBadPeer = errors.New("it does not keep to the protocol")
