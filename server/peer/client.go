package peer

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/peer/peerproto"
	"github.com/vedette-io/vedette/wire"
)

// Client calls other servers. It implements dispatch.Remote and is safe for concurrent use.
type Client struct {
	cfg     Config
	log     *slog.Logger
	locator *locator
	answers *fair.Line // memory of large outcomes; keys are accounts

	mu    sync.Mutex
	conns map[vedette.ServerID]*conn
}

var _ dispatch.Remote = (*Client)(nil)

// conn is the connection to one process.
type conn struct {
	peer Peer
	grpc *grpc.ClientConn
}

// NewClient returns a Client that finds accounts by a.
func NewClient(cfg Config, a accounts, log *slog.Logger) *Client {
	cfg.defaults()
	return &Client{cfg: cfg, log: log, locator: newLocator(a), conns: map[vedette.ServerID]*conn{},
		answers: fair.New(fair.Config{Capacity: cfg.AnswerBytes, Share: cfg.AnswerBytes * 4 / 5, Wait: answerWait})}
}

// answerWait is how long an outcome waits for memory.
const answerWait = 10 * time.Second

// Run closes the connections to processes that do not run any more, until ctx ends, and then all.
func (c *Client) Run(ctx context.Context) error {
	tick := time.NewTicker(c.cfg.CheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			c.closeIf(func(Peer) bool { return true })
			return nil
		case <-tick.C:
			c.closeIf(func(p Peer) bool { return !runs(c.cfg.Members, p) })
		}
	}
}

func (c *Client) closeIf(isGone func(Peer) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, conn := range c.conns {
		if isGone(conn.peer) {
			_ = conn.grpc.Close() // it is gone either way
			delete(c.conns, id)
		}
	}
}

// Connections returns how many servers this one has connected to.
func (c *Client) Connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

// dial returns what calls a process.
func (c *Client) dial(p Peer) (peerproto.PeersClient, error) {
	conn, err := c.conn(p)
	if err != nil {
		return nil, err
	}
	return peerproto.NewPeersClient(conn), nil
}

// conn returns the connection to a process.
func (c *Client) conn(p Peer) (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if existing := c.conns[p.ID]; existing != nil {
		if existing.peer == p {
			return existing.grpc, nil
		}
		_ = existing.grpc.Close() // it is gone either way
		delete(c.conns, p.ID)
	}
	client, err := grpc.NewClient("passthrough:///"+p.Address, grpc.WithTransportCredentials(newClientCredentials(c.cfg.Identity, p)),
		grpc.WithNoProxy(), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec()), grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithInitialWindowSize(streamWindow), grpc.WithInitialConnWindowSize(maxMessage), grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: c.cfg.ConnectTimeout,
			Backoff: backoff.Config{BaseDelay: minBackoff, Multiplier: 2, Jitter: 0.2, MaxDelay: maxBackoff}}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}))
	if err != nil {
		return nil, fmt.Errorf("connect to server %s at %s: %w", p.ID, p.Address, err)
	}
	c.conns[p.ID] = &conn{p, client}
	return client, nil
}

// AwaitEnd implements dispatch.Remote.
func (c *Client) AwaitEnd(ctx context.Context, server vedette.ServerID, id vedette.OperationID) error {
	p, ok := c.cfg.Members.Peer(server)
	if !ok {
		return vedette.Errorf(vedette.Unavailable, "server %s, which accepted operation %s, does not run", server, id)
	}
	client, err := c.dial(p)
	if err == nil {
		_, err = client.AwaitEnd(ctx, &peerproto.AwaitEndRequest{Operation: string(id)})
	}
	if err != nil {
		return vedette.Errorf(vedette.Unavailable, "ask server %s for operation %s: %w", server, id, err)
	}
	return nil
}

// How long a search waits before it asks again.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 500 * time.Millisecond
)

// pause waits before an attempt, or until ctx ends, which it reports.
func pause(ctx context.Context, attempt int) (ended bool) {
	d := min(maxBackoff, minBackoff<<min(attempt, 10))
	timer := time.NewTimer(d/2 + rand.N(d/2)) //nolint:gosec // spreads requests
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return true
	case <-timer.C:
		return false
	}
}
