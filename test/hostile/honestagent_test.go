package hostile

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// dial connects to the server from one of this machine's addresses, as if from another host.
func dial(server, from string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+server, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec())),
		grpc.WithContextDialer(func(ctx context.Context, at string) (net.Conn, error) {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
			return d.DialContext(ctx, "tcp", at)
		}))
}

// honestAgent is a correct agent, whose account nothing else may change.
type honestAgent struct {
	t       *testing.T
	server  *server
	account string
	stream  grpc.BidiStreamingClient[wire.AgentMessage, wire.ServerMessage]

	mu     sync.Mutex // guards the fields below, and Send
	writer wire.Writer
	term   int64

	isDisconnected atomic.Bool // whether its connection was lost
	assigned       chan int64
	welcomed       chan string
	latencies      []time.Duration
	stored         map[string]string // versions that it has reported, by name
}

// join connects an honest agent with an account of its own.
func join(t *testing.T, s *server, account string) *honestAgent {
	t.Helper()
	conn, err := dial(s.grpc, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	h := &honestAgent{t: t, server: s, account: account, assigned: make(chan int64, 16), welcomed: make(chan string, 1), stored: map[string]string{}}
	h.stream, err = wire.NewCachingClient(conn).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.send(&wire.AgentMessage{Message: &wire.AgentMessage_Hello{Hello: &wire.Hello{OldestProtocol: 1, NewestProtocol: 1, AgentId: "honest-" + account}}})
	go h.receive()
	session := <-h.welcomed
	h.send(registration(account))
	h.term = <-h.assigned
	go h.sendHeartbeats()
	go h.answerOperations(wire.NewOperationsClient(conn), session)
	h.sendRecord(nil, &wire.Record_Declare{Declare: &wire.Declare{Feeds: []*wire.DeclaredFeed{{Feed: pods(), Version: "v1", Plural: "pods", Namespaced: true}}}})
	h.sendRecord(pods(), &wire.Record_Begin{Begin: &wire.Begin{}})
	h.sendRecord(pods(), &wire.Record_End{End: &wire.End{ResourceVersion: "1"}})
	return h
}

func pods() *wire.Feed { return &wire.Feed{Kind: &wire.Kind{Name: "Pod"}} }

func registration(account string) *wire.AgentMessage {
	return &wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: &wire.Register{
		Account: account, Cluster: &wire.Cluster{Uid: "uid-" + account, Host: "https://" + account}, Properties: []byte("{}")}}}
}

func (h *honestAgent) send(m *wire.AgentMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.stream.Send(m); err != nil {
		h.t.Errorf("honest agent of %s: send: %v", h.account, err)
	}
}

func (h *honestAgent) receive() {
	for {
		m, err := h.stream.Recv()
		if err != nil {
			if h.isDisconnected.Store(true); h.t.Context().Err() == nil {
				h.t.Errorf("honest agent of %s: lost its connection: %v", h.account, err)
			}
			return
		}
		switch {
		case m.GetWelcome() != nil:
			h.welcomed <- m.GetWelcome().GetSession()
		case m.GetAssignment().GetRole() == wire.Assignment_ROLE_CACHER:
			h.assigned <- m.GetAssignment().GetTerm()
		case m.GetAssignment() != nil:
			h.t.Errorf("honest agent of %s: lost its account: %v", h.account, m)
		}
	}
}

func (h *honestAgent) sendHeartbeats() {
	for h.t.Context().Err() == nil && !h.isDisconnected.Load() {
		h.sendRecord(nil, &wire.Record_Heartbeat{Heartbeat: &wire.AgentHeartbeat{UnixMillis: time.Now().UnixMilli()}})
		time.Sleep(time.Second)
	}
}

// sendRecord sends one record.
func (h *honestAgent) sendRecord(feed *wire.Feed, step wire.Step) {
	rec := &wire.Record{Account: h.account, Term: h.term, Feed: feed, Step: step}
	if rec.GetHeartbeat() != nil {
		rec.Account, rec.Term = "", 0
	}
	b, err := wire.Marshal(rec)
	if err != nil {
		h.t.Error(err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.t.Context().Err() != nil {
		return
	}
	_ = h.writer.Write(b) // writes to memory
	pieces, err := h.writer.Flush()
	if err != nil {
		h.t.Error(err)
	}
	for _, d := range pieces {
		if err := h.stream.Send(data(d.GetZstd())); err != nil && h.t.Context().Err() == nil {
			h.t.Errorf("honest agent of %s: send: %v", h.account, err)
		}
	}
}

func data(zstd []byte) *wire.AgentMessage {
	return &wire.AgentMessage{Message: &wire.AgentMessage_Data{Data: &wire.Data{Zstd: bytes.Clone(zstd)}}}
}

// answerOperations answers operations with the name of its account.
func (h *honestAgent) answerOperations(c wire.OperationsClient, session string) {
	stream, err := c.Serve(h.t.Context())
	if err != nil {
		h.t.Error(err)
		return
	}
	_ = stream.Send(&wire.OperationsUp{Message: &wire.OperationsUp_Attach{Attach: &wire.Attach{Session: session, Process: "honest-" + h.account}}})
	for {
		m, err := stream.Recv()
		if err != nil {
			return
		}
		if op := m.GetOperation(); op != nil {
			time.Sleep(20 * time.Millisecond) // so that an attacker could answer first
			_ = stream.Send(&wire.OperationsUp{Message: &wire.OperationsUp_Outcome{Outcome: wire.FromOutcome(vedette.Outcome{
				ID: vedette.OperationID(op.GetId()), State: vedette.Done, Status: 200, Message: "honest"})}})
		}
	}
}

// change changes an object, and waits until the change is visible.
func (h *honestAgent) change(t *testing.T, i int) {
	t.Helper()
	name, version := fmt.Sprint("pod-", i%5), fmt.Sprint(100+i)
	began := time.Now()
	h.sendRecord(pods(), &wire.Record_Upsert{Upsert: &wire.Upsert{Namespace: "default", Name: name, Uid: "uid-" + name, ResourceVersion: version, ApiVersion: "v1",
		Live: true, Body: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `"}}`)}})
	await(t, "a change of "+h.account+" is visible", func() error {
		if h.isDisconnected.Load() {
			t.Fatalf("honest agent of %s: not connected", h.account)
		}
		versions, err := h.server.versions(h.account)
		if err == nil && versions[name] != version {
			err = fmt.Errorf("got %s at version %s, want %s", name, versions[name], version)
		}
		return err
	})
	h.latencies = append(h.latencies, time.Since(began))
	h.stored[name] = version
}

// verifyStored checks that exactly what the agent has reported is stored.
func (h *honestAgent) verifyStored(t *testing.T) {
	t.Helper()
	versions, err := h.server.versions(h.account)
	if err != nil || fmt.Sprint(versions) != fmt.Sprint(h.stored) {
		t.Errorf("%s: got %v stored, error %v, want %v", h.account, versions, err, h.stored)
	}
}

// logLatencies logs how long it took until changes were visible.
func (h *honestAgent) logLatencies(t *testing.T) {
	t.Helper()
	slices.Sort(h.latencies)
	n := len(h.latencies)
	if n == 0 {
		return
	}
	t.Logf("%s: %d changes, visible after p50 %v, p99 %v, at most %v", h.account, n,
		h.latencies[n/2].Round(time.Millisecond), h.latencies[n*99/100].Round(time.Millisecond), h.latencies[n-1].Round(time.Millisecond))
	h.latencies = nil
}
