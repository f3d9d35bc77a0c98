// Package gate lets agents in: it speaks the wire's language with each and
// hands what they say to the rooms behind it, as words of the domain. One
// session serves one agent, from its Hello until either side leaves.
package agentserver

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
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/wire"
)

// Config is what a gate tells agents when they come in.
type Config struct {
	ServerID vedette.ServerID
	Version  string
	// Heartbeat is how often each side must be heard; a side that is silent for three
	// pulses is gone. Zero means 3 seconds.
	Heartbeat time.Duration
	// CreditBytes is how many bytes of records an agent may have under way that are not
	// stored yet. Zero means 4 MiB.
	CreditBytes int
	// Kinds that are cached for accounts that name none; nil means vedette.DefaultKinds.
	Kinds       []string
	Projections []vedette.Projection
	// HelloTimeout is how long an agent may take for the first message of a stream. Zero
	// means 10 seconds.
	HelloTimeout time.Duration
	// MemoryBytes bounds what agents make the gate hold, in bytes, besides what waits for
	// the database: 32 KiB for each that is connected, 1 MiB for each that sends
	// changes, and large records and answers on their way. Zero means 128 MiB.
	MemoryBytes int64
}

// HeartbeatInterval is Heartbeat, or its default.
func (c Config) HeartbeatInterval() time.Duration {
	c.defaults()
	return c.Heartbeat
}

func (c *Config) defaults() {
	if c.Heartbeat == 0 {
		c.Heartbeat = 3 * time.Second
	}
	if c.CreditBytes == 0 {
		c.CreditBytes = 4 << 20
	}
	if c.HelloTimeout == 0 {
		c.HelloTimeout = 10 * time.Second
	}
	if c.MemoryBytes == 0 {
		c.MemoryBytes = 128 << 20
	}
	if c.Kinds == nil {
		c.Kinds = vedette.DefaultKinds
	}
}

// Server implements the Caching service, and the Operations service.
type Server struct {
	wire.UnimplementedCachingServer
	cfg               Config
	ingest            *ingest.Ingest
	assigner          *assignment.Registry
	dispatch          *dispatch.Dispatcher
	log               *slog.Logger
	decoders          wire.DecoderPool
	projectionHash    string // stands for what agents are asked to lift; part of an account's shape
	memory            *memoryBudget
	recordBudget      *recordBudget
	heartbeatMu       sync.Mutex          // held while the pulses of an agent without accounts are decoded
	unknownAccountLog logthrottle.Limiter // what agents say of accounts that are not theirs
	rejectionLog      logthrottle.Limiter // agents that are not let in
	registrationLog   logthrottle.Limiter // registrations that no store is asked about

	mu       sync.Mutex
	sessions map[string]*session // by token
	draining bool
}

// New returns a gate in front of an ingest, a roster and a dispatch; without a
// dispatch, agents are given no operations.
func New(cfg Config, in *ingest.Ingest, r *assignment.Registry, d *dispatch.Dispatcher, log *slog.Logger) *Server {
	cfg.defaults()
	srv := &Server{cfg: cfg, ingest: in, assigner: r, dispatch: d, log: log, projectionHash: hashProjections(cfg.Projections), sessions: map[string]*session{}, memory: newMemoryBudget(cfg.MemoryBytes), recordBudget: newRecordBudget(in.Limit() / 4)}
	srv.unknownAccountLog.Interval, srv.rejectionLog.Interval, srv.registrationLog.Interval = time.Minute, time.Minute, time.Second
	return srv
}

// hashProjections folds lifts into a short text: when a server asks for other fields
// than the one before it, the headers that are stored lack them.
func hashProjections(projections []vedette.Projection) string {
	return strconv.FormatUint(xxhash.Sum64String(fmt.Sprint(projections, vedette.HeaderAnnotations)), 36)
}

// Register adds the gate's services to a gRPC server.
func (srv *Server) Register(registrar grpc.ServiceRegistrar) {
	wire.RegisterCachingServer(registrar, srv)
	wire.RegisterOperationsServer(registrar, operationsService{Server: srv})
}

// Connect serves one agent. gRPC calls it.
func (srv *Server) Connect(stream grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]) error {
	s := newSession(srv, stream)
	defer s.share.close()
	defer s.unstored.close()
	if !srv.admit(s) {
		return srv.logRejection(s.ctx, errDraining)
	}
	defer srv.remove(s)
	return s.run()
}

var errDraining = status.Error(codes.Unavailable, "the server is shutting down and accepts no agents: connect to another server")

// logRejection logs why an agent is not let in, once a minute, and returns that.
func (srv *Server) logRejection(ctx context.Context, err error) error {
	if n, ok := srv.rejectionLog.Allow(); ok {
		srv.log.Warn("agent rejected", "source", sourceOf(ctx), "error", err, "count", n)
	}
	return err
}

// admit takes a session in, unless the gate drains.
func (srv *Server) admit(s *session) bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if !srv.draining {
		srv.sessions[s.token] = s
	}
	return !srv.draining
}

func (srv *Server) remove(s *session) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	delete(srv.sessions, s.token)
}

// StopAccepting lets no agent in from now on. Those that are connected stay until Drain.
func (srv *Server) StopAccepting() {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.draining = true
}

// Draining reports whether the gate lets no agents in.
func (srv *Server) Draining() bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.draining
}

// Drain asks every agent to connect elsewhere, lets none in, and waits until they
// have left or ctx ends.
func (srv *Server) Drain(ctx context.Context, reason string) {
	srv.mu.Lock()
	srv.draining = true
	for _, s := range srv.sessions {
		s.out.put(&wire.ServerMessage{Message: &wire.ServerMessage_Drain{Drain: &wire.Drain{Reason: reason}}})
	}
	srv.mu.Unlock()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for srv.Agents() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Agents returns how many agents are connected.
func (srv *Server) Agents() int {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return len(srv.sessions)
}
