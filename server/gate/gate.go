// Package gate lets agents in: it speaks the wire's language with each and
// hands what they say to the rooms behind it, as words of the domain. One
// session serves one agent, from its Hello until either side leaves.
package gate

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/occasional"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/roster"
	"github.com/vedette-io/vedette/wire"
)

// Config is what a gate tells agents when they come in.
type Config struct {
	Server  vedette.ServerID
	Version string
	// Pulse is how often each side must be heard; a side that is silent for three
	// pulses is gone. Zero means 3 seconds.
	Pulse time.Duration
	// Credit is how many bytes of records an agent may have under way that are not
	// stored yet. Zero means 4 MiB.
	Credit int
	// Kinds that are cached for accounts that name none; nil means vedette.DefaultKinds.
	Kinds []string
	Lifts []vedette.Lift
	// Greeting is how long an agent may take for the first message of a stream. Zero
	// means 10 seconds.
	Greeting time.Duration
	// Memory bounds what agents make the gate hold, in bytes, besides what waits for
	// the database: 32 KiB for each that is connected, 1 MiB for each that sends
	// changes, and large records and answers on their way. Zero means 128 MiB.
	Memory int64
}

// Interval is Pulse, or its default.
func (c Config) Interval() time.Duration {
	c.defaults()
	return c.Pulse
}

func (c *Config) defaults() {
	if c.Pulse == 0 {
		c.Pulse = 3 * time.Second
	}
	if c.Credit == 0 {
		c.Credit = 4 << 20
	}
	if c.Greeting == 0 {
		c.Greeting = 10 * time.Second
	}
	if c.Memory == 0 {
		c.Memory = 128 << 20
	}
	if c.Kinds == nil {
		c.Kinds = vedette.DefaultKinds
	}
}

// Gate implements the Caching service, and the Operations service.
type Gate struct {
	wire.UnimplementedCachingServer
	cfg      Config
	ingest   *ingest.Ingest
	roster   *roster.Roster
	dispatch *dispatch.Dispatch
	log      *slog.Logger
	decoders wire.Decoders
	lifted   string // stands for what agents are asked to lift; part of an account's shape
	memory   *memory
	inflight *inflight
	quiet    sync.Mutex       // held while the pulses of an agent without accounts are decoded
	foreign  occasional.Limit // what agents say of accounts that are not theirs
	refused  occasional.Limit // agents that are not let in
	unusable occasional.Limit // registrations that no store is asked about

	mu       sync.Mutex
	sessions map[string]*session // by token
	draining bool
}

// New returns a gate in front of an ingest, a roster and a dispatch; without a
// dispatch, agents are given no operations.
func New(cfg Config, in *ingest.Ingest, r *roster.Roster, d *dispatch.Dispatch, log *slog.Logger) *Gate {
	cfg.defaults()
	g := &Gate{cfg: cfg, ingest: in, roster: r, dispatch: d, log: log, lifted: shapeOf(cfg.Lifts), sessions: map[string]*session{}, memory: newMemory(cfg.Memory), inflight: newInflight(in.Limit() / 4)}
	g.foreign.Interval, g.refused.Interval, g.unusable.Interval = time.Minute, time.Minute, time.Second
	return g
}

// shapeOf folds lifts into a short text: when a server asks for other fields
// than the one before it, the headers that are stored lack them.
func shapeOf(lifts []vedette.Lift) string {
	return strconv.FormatUint(xxhash.Sum64String(fmt.Sprint(lifts, vedette.LiftedAnnotations)), 36)
}

// Serve adds the gate's services to a gRPC server.
func (g *Gate) Serve(s grpc.ServiceRegistrar) {
	wire.RegisterCachingServer(s, g)
	wire.RegisterOperationsServer(s, operationsService{Gate: g})
}

// Connect serves one agent. gRPC calls it.
func (g *Gate) Connect(stream grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]) error {
	s := newSession(g, stream)
	defer s.share.close()
	defer s.unstored.close()
	if !g.enter(s) {
		return g.turnedAway(s.ctx, errDraining)
	}
	defer g.leave(s)
	return s.run()
}

var errDraining = status.Error(codes.Unavailable, "the server is going away and takes no agents; connect again, to another one")

// turnedAway logs why an agent is not let in, once a minute, and returns that.
func (g *Gate) turnedAway(ctx context.Context, err error) error {
	if n, ok := g.refused.Pass(); ok {
		g.log.Warn("agent not let in", "source", sourceOf(ctx), "error", err, "count", n)
	}
	return err
}

// enter takes a session in, unless the gate drains.
func (g *Gate) enter(s *session) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.draining {
		g.sessions[s.token] = s
	}
	return !g.draining
}

func (g *Gate) leave(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sessions, s.token)
}

// Drain lets no agent in from now on. Those that are connected stay until Goodbye.
func (g *Gate) Drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining = true
}

// Draining reports whether the gate lets no agents in.
func (g *Gate) Draining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

// Goodbye asks every agent to connect elsewhere, lets none in, and waits until they
// have left or ctx ends.
func (g *Gate) Goodbye(ctx context.Context, reason string) {
	g.mu.Lock()
	g.draining = true
	for _, s := range g.sessions {
		s.out.put(&wire.ServerMessage{Message: &wire.ServerMessage_Goodbye{Goodbye: &wire.Goodbye{Reason: reason}}})
	}
	g.mu.Unlock()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for g.Agents() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Agents returns how many agents are connected.
func (g *Gate) Agents() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.sessions)
}
