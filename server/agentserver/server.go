// Package agentserver implements the gRPC services for agents. It converts their messages
// and passes them to ingest, assignment and dispatch. One session serves one agent, from
// its Hello until either side disconnects.
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
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/attributes"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/wire"
)

// Config configures the server. Agents receive most of it in Welcome.
type Config struct {
	ServerID vedette.ServerID
	Version  string
	// Time between two heartbeats, in seconds, in both directions. Three missed heartbeats end a connection.
	Heartbeat time.Duration `config:"heartbeatSeconds,alias=pulseSeconds" format:"seconds" default:"3" minimum:"1" maximum:"300"`
	// Unacknowledged changes that one agent may send.
	CreditBytes int `config:"creditBytes" format:"bytes" default:"4MiB" minimum:"64KiB" maximum:"1GiB"`
	// Kinds are cached for accounts that configure none; nil means
	// vedette.DefaultKinds.
	Kinds       []string
	Projections []vedette.Projection
	// HelloTimeout is how long an agent may take for the first message of a stream.
	// Zero means 10 seconds.
	HelloTimeout time.Duration
	// MemoryBytes limits the memory in bytes that agents use in the server, besides the
	// records that wait for the database: 32 KiB for each connected agent, 1 MiB for
	// each agent that sends changes, and large records and answers in transit. Zero
	// means 128 MiB.
	MemoryBytes int64
}

// HeartbeatInterval returns Heartbeat, or its default.
func (c Config) HeartbeatInterval() time.Duration {
	c.defaults()
	return c.Heartbeat
}

func (c *Config) defaults() {
	*c = configfile.WithDefaults(*c)
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

// Server implements the gRPC services Caching and Operations.
type Server struct {
	wire.UnimplementedCachingServer
	cfg               Config
	ingest            *ingest.Ingest
	assigner          *assigner.Registry
	dispatch          *dispatch.Dispatcher
	log               *slog.Logger
	decoders          wire.DecoderPool
	projectionHash    string // of Config.Projections; part of an account's shape
	memory            *memoryBudget
	recordBudget      *recordBudget
	heartbeatMu       sync.Mutex          // held while the heartbeats of an agent without accounts are decoded
	unknownAccountLog logthrottle.Limiter // messages about accounts that the agent does not have
	rejectionLog      logthrottle.Limiter // rejected agents
	registrationLog   logthrottle.Limiter // registrations that are rejected without a look at the store
	sessionLogs       *logthrottle.Sources

	mu       sync.Mutex
	kinds    []string            // for accounts that configure none
	sessions map[string]*session // by token
	draining bool
}

// New returns a Server that passes records to in, registrations to r and outcomes to d.
// Without a Dispatcher, agents receive no operations.
func New(cfg Config, in *ingest.Ingest, r *assigner.Registry, d *dispatch.Dispatcher, log *slog.Logger) *Server {
	cfg.defaults()
	srv := &Server{cfg: cfg, ingest: in, assigner: r, dispatch: d, log: log, projectionHash: hashProjections(cfg.Projections),
		sessions: map[string]*session{}, memory: newMemoryBudget(cfg.MemoryBytes), recordBudget: newRecordBudget(in.Limit() / 4),
		kinds: cfg.Kinds, sessionLogs: logthrottle.NewSources(log)}
	srv.unknownAccountLog.Interval = time.Minute
	srv.rejectionLog.Interval = time.Minute
	srv.registrationLog.Interval = time.Second
	return srv
}

// hashProjections hashes projections into a short text. It is part of an account's
// shape, because the stored headers lack fields that only a newer server requests, and the stored
// attributes what only a newer server derives from them.
func hashProjections(projections []vedette.Projection) string {
	return strconv.FormatUint(xxhash.Sum64String(fmt.Sprint(projections, vedette.HeaderAnnotations, attributes.Version)), 36)
}

// Register adds the services to a gRPC server.
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

var errDraining = status.Error(codes.Unavailable, "the server is stopping and accepts no agents: connect to another server")

// logRejection logs why an agent was rejected, at most once a minute, and returns the
// error.
func (srv *Server) logRejection(ctx context.Context, err error) error {
	if n, ok := srv.rejectionLog.Allow(); ok {
		srv.log.Warn("agent rejected", "source", sourceOf(ctx), "error", err, "count", n)
	}
	return err
}

// admit adds a session. It returns false if the server is draining.
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

// StopAccepting makes the server reject new agents. Connected agents stay until Drain.
func (srv *Server) StopAccepting() {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.draining = true
}

// Draining reports whether the server rejects new agents.
func (srv *Server) Draining() bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.draining
}

// Drain rejects new agents, asks every connected agent to connect to another server,
// and waits until they have disconnected or ctx ends.
func (srv *Server) Drain(ctx context.Context, reason string) {
	srv.askToLeave(reason)
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

// askToLeave asks each connected agent to connect to another server, one after the other.
func (srv *Server) askToLeave(reason string) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.draining = true
	interval := min(reconnectPause, DrainSpread/time.Duration(max(1, len(srv.sessions))))
	i := 0
	for _, s := range srv.sessions {
		s.out.put(newDrain(reason, time.Duration(i)*interval, false))
		i++
	}
}

// DrainSpread is the time over which Drain spreads the agents at most. Others must have time to connect elsewhere after it.
const DrainSpread = 3 * time.Second

// newDrain asks an agent to connect again after some time.
func newDrain(reason string, after time.Duration, staysOpen bool) *wire.ServerMessage {
	return &wire.ServerMessage{Message: &wire.ServerMessage_Drain{Drain: &wire.Drain{Reason: reason,
		AfterMillis: new(uint32(after.Milliseconds())), StaysOpen: staysOpen}}}
}

// Agents returns the number of connected agents.
func (srv *Server) Agents() int {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return len(srv.sessions)
}
