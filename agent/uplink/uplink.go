// Package uplink is the agent's connection to a server. It dials, authenticates, registers
// the accounts, sends the changes of the outbox and passes on the messages of the server.
// If the connection is lost, it opens another one. No change is lost with a connection,
// because the outbox keeps what was not acknowledged.
package uplink

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/wire"
)

// Config is the address of the server and the identity of the agent.
type Config struct {
	Target string // host:port, or any gRPC target
	TLS    bool   // whether Creds use TLS, for error messages
	Creds  credentials.TransportCredentials
	// Certificate describes the client certificate, for the error if the server does not
	// accept it. Nil if there is none.
	Certificate func() string
	Agent       vedette.AgentID
	Version     string
	Hostname    string
	Replicas    int // of the workload of the agent's pod, when the agent started; 0 if unknown
	// Process identifies this process among all that ever ran as this agent, because the
	// server resumes an operation only with the process that received it. Empty means a
	// random name.
	Process string
	ZoneID  string
	// Backoff are the pauses between connections, to each of which ShortestPause is added.
	Backoff       Backoff
	ShortestPause time.Duration
	DialOptions   []grpc.DialOption
	// Token supplies a bearer token for a proxy in front of the server; nil for none.
	Token tokenSource
	// Addresses returns the addresses, host:port, of the servers behind Target, in any order. Each connection chooses one
	// of them at random. Nil means that gRPC resolves Target.
	Addresses func(context.Context) ([]string, error)
	// Observer measures the connection; nil for none.
	Observer observer
	// Freshness returns up to when the accounts are complete that the server has assigned to this agent; nil
	// for none. It must not block.
	Freshness func(now time.Time) []AccountFreshness
	// Prove is called some time before Freshness, so that it can find out what to return; nil for none. It must not
	// block.
	Prove func(within time.Duration)
}

// observer measures the connection. Its methods must not block.
type observer interface {
	Connected()
	// Disconnected is called when a connection has ended, or could not be established.
	Disconnected(reason string, wasEstablished bool)
	// Sent is called with changes that were sent, and with the bytes that they took on the wire.
	Sent(changes []outbox.Change, wireBytes int)
}

// noObserver measures nothing.
type noObserver struct{}

func (noObserver) Connected()                {}
func (noObserver) Disconnected(string, bool) {}
func (noObserver) Sent([]outbox.Change, int) {}

// Role is the role of this agent for an account.
type Role = wire.Assignment_Role

// Assignment is the server's response to a registration.
type Assignment struct {
	Account vedette.AccountName
	Role    Role
	Term    vedette.Term
	Marks   map[vedette.Feed]vedette.Mark
	Message string
}

// ServerSettings is what the server requests for every account.
type ServerSettings struct {
	Kinds       []string
	Projections []vedette.Projection
	Annotations []string
	Verifies    bool // the server answers questions about what it stores of a feed
}

// Index is a piece of the digests of a feed's objects at the server.
type Index struct {
	Account vedette.AccountName
	Feed    vedette.Feed
	Digests []uint64
	Last    bool
}

// VerifyAnswer is what the server stores of a feed; see wire.VerifyAnswer.
type VerifyAnswer struct {
	Account vedette.AccountName
	Feed    vedette.Feed
	ID      uint64 // of the question
	Buckets []uint32
	// Digests and NameHashes have the same length.
	Digests, NameHashes []uint64
	Names               []string
	Refusal             string // why the server did not answer; empty if it did
}

// handler receives the messages of the server. Its methods are called one at a time, by the
// receiving goroutine, and must not wait for the server.
type handler interface {
	Connected(ServerSettings)
	Assigned(Assignment)
	Indexed(Index)
	VerifyAnswered(VerifyAnswer)
}

// Uplink keeps a connection to a server. It is safe for concurrent use.
type Uplink struct {
	cfg      Config
	box      *outbox.Box
	handler  handler
	executor executor  // nil for an agent without operations
	balancer *balancer // nil if gRPC resolves the target
	log      *slog.Logger

	heartbeatWanted   chan struct{} // holds a token after SendHeartbeat
	heartbeatInterval atomic.Int64  // as the server last asked for it, in nanoseconds; 0 before the first

	mu              sync.Mutex
	accounts        map[vedette.AccountName]*wire.Register      // to be registered on every connection
	accountErrors   map[vedette.AccountName]*wire.AccountError  // sent on every new connection
	conditions      map[vedette.AccountName][]vedette.Condition // sent on every new connection; those of the agent under ""
	config          *ConfigStatus                               // sent on every new connection; nil if unknown
	link            *link                                       // nil while not connected
	status          atomic.Pointer[linkStatus]                  // changed with mu held, but never waited for
	operationStream atomic.Pointer[operationStream]             // nil while the server takes no outcomes; never waited for
}

// linkStatus is the state of the connection.
type linkStatus struct {
	server string // the current or last server
	lost   error  // why the last connection ended; nil while connected
}

// New returns an Uplink that sends the changes of box. It does not dial before Run.
func New(cfg Config, box *outbox.Box, h handler, e executor, log *slog.Logger) *Uplink {
	cfg = cfg.withRememberedToken()
	if cfg.Observer == nil {
		cfg.Observer = noObserver{}
	}
	if cfg.Process == "" {
		cfg.Process = rand.Text()
	}
	u := &Uplink{cfg: cfg, box: box, handler: h, executor: e, log: log, accounts: map[vedette.AccountName]*wire.Register{},
		accountErrors: map[vedette.AccountName]*wire.AccountError{}, conditions: map[vedette.AccountName][]vedette.Condition{},
		heartbeatWanted: make(chan struct{}, 1)}
	if cfg.Addresses != nil {
		u.balancer = newBalancer(cfg.Addresses)
	}
	u.status.Store(&linkStatus{lost: errors.New("not connected yet")})
	return u
}

// Register requests a role for an account, on this connection and on each later one. The
// response is an Assignment. Another call for the same account replaces the registration.
func (u *Uplink) Register(a vedette.Account) error {
	properties, err := json.Marshal(a.Properties)
	if err != nil {
		return err
	}
	r := &wire.Register{Account: string(a.Name), Cluster: wire.FromCluster(a.Cluster), Properties: properties, Namespaces: a.Namespaces,
		Shape: a.Shape}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.accounts[a.Name] = r
	u.sendControlLocked(&wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: r}})
	return nil
}

// Deregister withdraws the registration of an account.
func (u *Uplink) Deregister(name vedette.AccountName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.accounts[name] == nil && u.accountErrors[name] == nil {
		return // the server does not know it
	}
	delete(u.accounts, name)
	delete(u.accountErrors, name) // the server forgets it, too
	delete(u.conditions, name)
	u.sendControlLocked(&wire.AgentMessage{Message: &wire.AgentMessage_Deregister{Deregister: &wire.Deregister{Account: string(name)}}})
}

// ReportAccountError reports why an account, or a part of it, cannot be watched. Nil clears
// the error.
func (u *Uplink) ReportAccountError(name vedette.AccountName, err error) {
	t := newAccountError(name, err)
	u.mu.Lock()
	defer u.mu.Unlock()
	if last := u.accountErrors[name]; last.GetMessage() == t.GetMessage() && last.GetKind() == t.GetKind() {
		return
	}
	u.accountErrors[name] = t
	if err == nil {
		delete(u.accountErrors, name)
	}
	u.sendControlLocked(accountErrorMessage(t))
}

func newAccountError(name vedette.AccountName, err error) *wire.AccountError {
	if err == nil {
		return &wire.AccountError{Account: string(name)}
	}
	return &wire.AccountError{Account: string(name), Message: err.Error(), Kind: string(vedette.KindOf(err))}
}

func accountErrorMessage(t *wire.AccountError) *wire.AgentMessage {
	return &wire.AgentMessage{Message: &wire.AgentMessage_AccountError{AccountError: t}}
}

func (u *Uplink) sendControlLocked(m *wire.AgentMessage) {
	if u.link != nil {
		u.link.sendControl(m)
	}
}

// Status returns the current or last server, and why there is no connection. Unlike methods
// that send, it never blocks.
func (u *Uplink) Status() (server string, err error) {
	current := u.status.Load()
	return current.server, current.lost
}

// transportCredentials returns Creds. Those with TLS report alerts of the server.
func (c Config) transportCredentials() credentials.TransportCredentials {
	if !c.TLS {
		return c.Creds
	}
	return alertCredentials{c.Creds}
}

// dial returns a client connection for one link. Links do not share a connection, because
// the TCP connection of a silent link may be lost without either side noticing, and a new
// stream over it would be silent too.
func (u *Uplink) dial() (*grpc.ClientConn, error) {
	target, options := u.balancer.balanced(u.cfg.Target)
	conn, err := grpc.NewClient(target, slices.Concat([]grpc.DialOption{
		grpc.WithTransportCredentials(u.cfg.transportCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 10 * time.Second}),
		grpc.WithReadBufferSize(16 << 10), grpc.WithWriteBufferSize(16 << 10),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec())),
	}, options, u.cfg.dialOptions())...)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "clouddriver.grpc %q is not a valid address: %w", u.cfg.Target, err)
	}
	return conn, nil
}

// activateLink makes l the current link and returns its first messages: all registrations,
// account errors, and the configuration.
func (u *Uplink) activateLink(l *link, server string) []*wire.AgentMessage {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.link = l
	u.cfg.Observer.Connected()
	u.status.Store(&linkStatus{server: server})
	var initial []*wire.AgentMessage
	for _, r := range u.accounts {
		initial = append(initial, &wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: r}})
	}
	for _, t := range u.accountErrors {
		initial = append(initial, accountErrorMessage(t))
	}
	for account, conditions := range u.conditions {
		initial = append(initial, conditionsMessage(account, conditions, time.Now()))
	}
	if u.config != nil {
		initial = append(initial, u.config.message(time.Now()))
	}
	return initial
}
