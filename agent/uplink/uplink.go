// Package uplink is the one connection that an agent opens: it dials the
// server, says who it is and which accounts it has, sends what the outbox holds
// and hands on what the server answers. When the connection is lost it opens
// another; nothing is lost with it, because the outbox keeps what was not
// acknowledged.
package uplink

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/wire"
)

// Config says where the server is and who we are.
type Config struct {
	Target   string // host:port, or any gRPC target
	TLS      bool   // whether Credentials are TLS, for words in errors
	Creds    credentials.TransportCredentials
	Agent    vedette.AgentID
	Version  string
	Hostname string
	// Process names this process among all that ever ran as this agent: the server
	// asks one that it knows what became of an operation, and no other. Empty means
	// a name that New makes up.
	Process string
	ZoneID  string
	// MinBackoff and MaxBackoff bound the wait before another try, which doubles
	// from one to the other with jitter. Zero means 500 ms and 20 s.
	MinBackoff, MaxBackoff time.Duration
	DialOptions            []grpc.DialOption
}

// Role is what the server made this agent to an account.
type Role = wire.Assignment_Role

// Assignment is the server's answer to a registration.
type Assignment struct {
	Account vedette.AccountName
	Role    Role
	Term    vedette.Term
	Marks   map[vedette.Feed]vedette.Mark
	Message string
}

// ServerSettings are what the server wants to know of every account.
type ServerSettings struct {
	Kinds       []string
	Projections []vedette.Projection
	Annotations []string
}

// Index is a piece of what the server holds of a feed.
type Index struct {
	Account vedette.AccountName
	Feed    vedette.Feed
	Digests []uint64
	Last    bool
}

// handler hears what the server says. Its methods are called one at a time,
// from the goroutine that receives, and must not wait for the server.
type handler interface {
	Connected(ServerSettings)
	Assigned(Assignment)
	Indexed(Index)
}

// Uplink is safe for concurrent use.
type Uplink struct {
	cfg      Config
	box      *outbox.Box
	handler  handler
	executor executor // nil for an agent that takes no operations
	log      *slog.Logger

	mu              sync.Mutex
	accounts        map[vedette.AccountName]*wire.Register     // to be registered on every connection
	accountErrors   map[vedette.AccountName]*wire.AccountError // to be told on every connection
	link            *link                                      // nil while not connected
	status          atomic.Pointer[linkStatus]                 // changed with mu held, but never waited for
	operationStream atomic.Pointer[operationStream]            // nil while the server takes no outcomes; never waited for
}

// linkStatus is how the connection is.
type linkStatus struct {
	server string // that we are or were connected to
	lost   error  // why the last connection ended; nil while connected
}

// New returns an uplink that sends what box holds. Nothing is dialled before Run.
func New(cfg Config, box *outbox.Box, h handler, e executor, log *slog.Logger) *Uplink {
	if cfg.MinBackoff == 0 {
		cfg.MinBackoff = 500 * time.Millisecond
	}
	if cfg.MaxBackoff == 0 {
		cfg.MaxBackoff = 20 * time.Second
	}
	if cfg.Process == "" {
		cfg.Process = rand.Text()
	}
	u := &Uplink{cfg: cfg, box: box, handler: h, executor: e, log: log, accounts: map[vedette.AccountName]*wire.Register{},
		accountErrors: map[vedette.AccountName]*wire.AccountError{}}
	u.status.Store(&linkStatus{lost: errors.New("not connected yet")})
	return u
}

// Register asks for a role in an account, on this connection and each later one.
// The answer comes as an Assignment. Again with other properties, it replaces
// what was registered.
func (u *Uplink) Register(a vedette.Account) error {
	properties, err := json.Marshal(a.Properties)
	if err != nil {
		return err
	}
	r := &wire.Register{Account: string(a.Name), Cluster: wire.FromCluster(a.Cluster), Properties: properties, Namespaces: a.Namespaces, Shape: a.Shape}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.accounts[a.Name] = r
	u.sendControlLocked(&wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: r}})
	return nil
}

// Deregister gives an account up.
func (u *Uplink) Deregister(name vedette.AccountName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.accounts, name)
	u.sendControlLocked(&wire.AgentMessage{Message: &wire.AgentMessage_Deregister{Deregister: &wire.Deregister{Account: string(name)}}})
}

// ReportAccountError tells people at the server what keeps an account from being reported;
// an empty message, that it is over.
func (u *Uplink) ReportAccountError(name vedette.AccountName, message string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.accountErrors[name].GetMessage() == message {
		return
	}
	t := &wire.AccountError{Account: string(name), Message: message}
	u.accountErrors[name] = t
	if message == "" {
		delete(u.accountErrors, name)
	}
	u.sendControlLocked(accountErrorMessage(t))
}

func accountErrorMessage(t *wire.AccountError) *wire.AgentMessage {
	return &wire.AgentMessage{Message: &wire.AgentMessage_AccountError{AccountError: t}}
}

func (u *Uplink) sendControlLocked(m *wire.AgentMessage) {
	if u.link != nil {
		u.link.sendControl(m)
	}
}

// Status returns the server that we are connected to, or why we are not. It does not
// wait, while whatever is told to the server may.
func (u *Uplink) Status() (server string, err error) {
	current := u.status.Load()
	return current.server, current.lost
}

// Run keeps the connection until ctx ends.
func (u *Uplink) Run(ctx context.Context) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval, wait.RandomizationFactor = u.cfg.MinBackoff, u.cfg.MaxBackoff, 0.5
	for {
		conn, err := u.dial()
		if err != nil {
			return err
		}
		served, err := u.connect(ctx, conn)
		if ctx.Err() != nil {
			return nil
		}
		if served > 10*time.Second {
			wait.Reset()
		}
		delay := wait.NextBackOff()
		u.log.Warn("no connection to the server; tried again", "server", u.cfg.Target, "in", delay.Round(time.Millisecond), "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay):
		}
	}
}

// dial prepares a TCP connection for one link. Links do not share one: a link
// that fell silent may have lost its TCP connection without either end being
// told, and a stream that is opened over that would be as silent.
func (u *Uplink) dial() (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(u.cfg.Target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(u.cfg.Creds),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 10 * time.Second}),
		grpc.WithReadBufferSize(16 << 10), grpc.WithWriteBufferSize(16 << 10),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec())),
	}, u.cfg.DialOptions...)...)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "%q is no address of a server: %w", u.cfg.Target, err)
	}
	return conn, nil
}

// connect opens one stream and serves it to its end, with which conn is closed.
// It returns how long it was served.
func (u *Uplink) connect(ctx context.Context, conn *grpc.ClientConn) (time.Duration, error) {
	l := newLink(u)
	started := time.Now()
	err := l.run(ctx, conn)
	_ = conn.Close() // which fails only where it was done before
	u.mu.Lock()
	u.link = nil
	err = explainError(err, u.cfg)
	u.status.Store(&linkStatus{server: u.status.Load().server, lost: err})
	u.mu.Unlock()
	u.box.Rewind()
	return time.Since(started), err
}

// activateLink makes the link the one that registrations go to, and returns what is
// to be said on it first.
func (u *Uplink) activateLink(l *link, server string) []*wire.AgentMessage {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.link = l
	u.status.Store(&linkStatus{server: server})
	var initial []*wire.AgentMessage
	for _, r := range u.accounts {
		initial = append(initial, &wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: r}})
	}
	for _, t := range u.accountErrors {
		initial = append(initial, accountErrorMessage(t))
	}
	return initial
}
