package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/peer/peerproto"
	"github.com/vedette-io/vedette/test/proxy"
	"github.com/vedette-io/vedette/wire"
)

// TestRelayingServerVanishes kills the relaying server while the agent executes. The agent ends meanwhile, connects to a third server, and
// offers its outcome before the accepting server has found it there.
func TestRelayingServerVanishes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		process string // that connects to the third server
		args    vedette.Args
		want    vedette.OutcomeState
		effects int // of the second process
	}{
		{"the same process", "1", restart, vedette.Done, 0},
		{"another process", "2", restart, vedette.Lost, 0},
		{"another process, idempotent", "2", scale, vedette.Done, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newInstallation(t, "s1", "s2", "s3")
			toThird := w.nodes["s1"].linkTo(w.nodes["s3"])
			toThird.Refuse()
			a := w.newAgent("a", "1", "prod")
			release := make(chan struct{})
			execute := a.execute
			a.execute = func(op vedette.Operation) vedette.Outcome { <-release; return execute(op) }
			a.connect(w.nodes["s2"])
			running := w.nodes["s1"].start(vedette.Operation{ID: "op", Account: "prod", Args: tt.args})
			await(t, "the operation is sent", func() bool { return a.effects("op") == 1 })
			a.disconnect()
			w.nodes["s2"].stop()
			w.evict("s2")
			close(release)
			await(t, "the operation has ended", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.outcomes) == 1 })
			next := a
			if tt.process != a.process {
				next = w.newAgent("a", tt.process, "prod")
			}
			next.connect(w.nodes["s3"]) // it sends its outcome, for which nobody waits there
			toThird.Heal()
			out := <-running
			if out.State != tt.want || tt.want == vedette.Lost && !strings.Contains(out.Message, "restarted before it answered") {
				t.Errorf("got %+v, want %s", out, tt.want)
			}
			if n := a.effects("op"); n != 1 {
				t.Errorf("it took effect %d times at the first process", n)
			}
			if n := next.effects("op"); next != a && n != tt.effects {
				t.Errorf("it took effect %d times at the second process, want %d", n, tt.effects)
			}
			await(t, "the end is recorded", func() bool { return w.row("op").State == tt.want })
			if tt.want == vedette.Done {
				await(t, "the agent may forget the outcome", func() bool { next.mu.Lock(); defer next.mu.Unlock(); return len(next.outcomes) == 0 })
			}
		})
	}
}

// TestOutcomeIsLostOnItsWay loses an outcome that the relaying server has written through. The agent, to which it is still connected, or
// which has moved, answers again from memory.
func TestOutcomeIsLostOnItsWay(t *testing.T) {
	for _, moves := range []bool{false, true} {
		t.Run(fmt.Sprint("the agent moves: ", moves), func(t *testing.T) {
			t.Parallel()
			w := newInstallation(t, "s1", "s2", "s3")
			link := w.nodes["s1"].linkTo(w.nodes["s2"])
			a := w.newAgent("a", "1", "prod")
			release := make(chan struct{})
			execute := a.execute
			a.execute = func(op vedette.Operation) vedette.Outcome { <-release; return execute(op) }
			a.connect(w.nodes["s2"])
			running := w.nodes["s1"].start(vedette.Operation{ID: "op", Account: "prod", Args: restart})
			await(t, "the operation is sent", func() bool { return a.effects("op") == 1 })
			link.Freeze(proxy.Down)
			close(release)
			await(t, "the outcome is written through", func() bool { return (store{w, nil}).writer("prod", "op") == "s2" })
			if moves {
				a.disconnect()
				w.nodes["s2"].stop()
				w.evict("s2")
				a.connect(w.nodes["s3"])
			}
			link.Cut()
			link.Heal()
			expectDone(t, <-running)
			if n := a.effects("op"); n != 1 {
				t.Errorf("it took effect %d times", n)
			}
			await(t, "the agent may forget the outcome", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.outcomes) == 0 })
		})
	}
}

// TestConnectionBreaksWhileTheAgentExecutes cuts the connection between the servers. The account stays busy, and the operation goes on.
func TestConnectionBreaksWhileTheAgentExecutes(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	link := w.nodes["s1"].linkTo(w.nodes["s2"])
	a := w.newAgent("a", "1", "prod")
	release := make(chan struct{})
	execute := a.execute
	a.execute = func(op vedette.Operation) vedette.Outcome { <-release; return execute(op) }
	a.connect(w.nodes["s2"])
	running := w.nodes["s1"].start(vedette.Operation{ID: "op", Account: "prod", Args: restart})
	await(t, "the operation is sent", func() bool { return a.effects("op") == 1 })
	link.Refuse()
	await(t, "the connection is lost", func() bool { return w.nodes["s2"].server.Connections() == 0 })
	if !w.nodes["s2"].IsBusy("prod") {
		t.Error("the account is not busy, so its agent could be replaced while it executes the operation")
	}
	link.Heal()
	await(t, "it is sent again", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.received) == 2 })
	close(release)
	expectDone(t, <-running)
	if n := a.effects("op"); n != 1 {
		t.Errorf("it took effect %d times", n)
	}
	await(t, "the account is not busy", func() bool { return !w.nodes["s2"].IsBusy("prod") })
}

// TestPartition separates two servers that both reach the database, until after the deadline. The operation has one outcome, in time.
func TestPartition(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	link := w.nodes["s1"].linkTo(w.nodes["s2"])
	a := w.newAgent("a", "1", "prod")
	release := make(chan struct{})
	execute := a.execute
	a.execute = func(op vedette.Operation) vedette.Outcome { <-release; return execute(op) }
	a.connect(w.nodes["s2"])
	deadline := time.Now().Add(time.Second)
	running := w.nodes["s1"].start(vedette.Operation{ID: "op", Account: "prod", Args: restart, Deadline: deadline})
	await(t, "the operation is sent", func() bool { return a.effects("op") == 1 })
	link.Freeze(proxy.Down, proxy.Up)
	close(release)
	out := <-running
	if late := time.Since(deadline.Add(500 * time.Millisecond)); out.State != vedette.Lost || late > 500*time.Millisecond {
		t.Errorf("got %+v, %v after the deadline and its grace", out, late)
	}
	link.Heal() // what was held back arrives late
	expectDone(t, w.nodes["s1"].Execute(t.Context(), vedette.Operation{ID: "next", Account: "prod", Args: restart}))
	await(t, "the end is recorded", func() bool { return w.row("op").State == vedette.Lost })
}

// TestCallerLeaves cancels a read at the agent, and ends the waiting of a change.
func TestCallerLeaves(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	a := w.newAgent("a", "1", "prod")
	release := make(chan struct{})
	defer close(release)
	a.execute = func(op vedette.Operation) vedette.Outcome {
		<-release
		return vedette.Outcome{ID: op.ID, State: vedette.Done}
	}
	a.connect(w.nodes["s2"])
	for id, args := range map[vedette.OperationID]vedette.Args{"get": get, "restart": restart} {
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan vedette.Outcome, 1)
		go func() { done <- w.nodes["s1"].Execute(ctx, vedette.Operation{ID: id, Account: "prod", Args: args}) }()
		await(t, "the operation is sent", func() bool { return a.effects(id) == 1 })
		leave()
		if out := <-done; out.Reason != "Canceled" {
			t.Errorf("got %+v", out)
		}
		await(t, "the agent is told", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.canceled[id] })
		if busy := w.nodes["s2"].IsBusy("prod"); busy != (id == "restart") {
			await(t, "only changes go on", func() bool { return w.nodes["s2"].IsBusy("prod") == (id == "restart") })
		}
		if id == "restart" {
			break
		}
	}
}

// liar is a process that has a row, and says what a test wants.
type liar struct {
	peerproto.UnimplementedPeersServer
	offer *peerproto.Agent
	after []*peerproto.RelayDown // what it sends when it has the operation
}

func (l *liar) Relay(stream grpc.BidiStreamingServer[peerproto.RelayUp, peerproto.RelayDown]) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	_ = stream.Send(&peerproto.RelayDown{Message: &peerproto.RelayDown_Agent{Agent: l.offer}})
	if _, err := stream.Recv(); err != nil {
		return err
	}
	for _, m := range l.after {
		_ = stream.Send(m)
	}
	<-stream.Context().Done()
	return nil
}

func piecesOf(t *testing.T, out vedette.Outcome) *peerproto.RelayDown {
	b, err := wire.Marshal(wire.FromOutcome(out))
	if err != nil {
		t.Fatal(err)
	}
	return pieceOf(&peerproto.Piece{Content: b, Size: uint64(len(b)), Last: true})
}

func pieceOf(p *peerproto.Piece) *peerproto.RelayDown {
	return &peerproto.RelayDown{Message: &peerproto.RelayDown_Piece{Piece: p}}
}

// TestPeersThatLie answers operations in ways that no server does. An operation gets no outcome that is not its own, and none twice.
func TestPeersThatLie(t *testing.T) {
	done := vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, Message: "own"}
	other := done
	other.ID = "other"
	twice := done
	twice.Message = "second"
	agent := &peerproto.Agent{Id: "a", Process: "1", Cluster: &wire.Cluster{Uid: "uid of prod"}}
	for _, tt := range []struct {
		name    string
		offer   *peerproto.Agent
		after   []*peerproto.RelayDown
		want    vedette.OutcomeState
		message string
	}{
		{"the truth", agent, []*peerproto.RelayDown{piecesOf(t, done)}, vedette.Done, "own"},
		{"two outcomes", agent, []*peerproto.RelayDown{piecesOf(t, done), piecesOf(t, twice)}, vedette.Done, "own"},
		{"an outcome after it has gone", agent, []*peerproto.RelayDown{{Message: &peerproto.RelayDown_Gone{Gone: &peerproto.Gone{}}}, piecesOf(t, done)}, vedette.Lost, "unknown whether"},
		{"the outcome of another operation", agent, []*peerproto.RelayDown{piecesOf(t, other)}, vedette.Lost, "unknown whether"},
		{"more than announced", agent, []*peerproto.RelayDown{pieceOf(&peerproto.Piece{Content: make([]byte, 100), Size: 10, Last: true})}, vedette.Lost, "unknown whether"},
		{"less than announced", agent, []*peerproto.RelayDown{pieceOf(&peerproto.Piece{Content: make([]byte, 10), Size: 100, Last: true})}, vedette.Lost, "unknown whether"},
		{"larger than the limit", agent, []*peerproto.RelayDown{pieceOf(&peerproto.Piece{Size: 1 << 60})}, vedette.Lost, "may have"},
		{"not an outcome", agent, []*peerproto.RelayDown{pieceOf(&peerproto.Piece{Content: []byte("\xff\xff"), Size: 2, Last: true})}, vedette.Lost, "unknown whether"},
		{"an outcome without a state", agent, []*peerproto.RelayDown{piecesOf(t, vedette.Outcome{ID: "op"})}, vedette.Lost, ""},
		{"a log", agent, []*peerproto.RelayDown{pieceOf(&peerproto.Piece{Log: true, Content: []byte("text")})}, vedette.Lost, "unknown whether"},
		{"nothing", agent, nil, vedette.Lost, "did not answer by the deadline"},
		{"an empty message", agent, []*peerproto.RelayDown{{}}, vedette.Lost, "unknown whether"},
		{"it was not sent", agent, []*peerproto.RelayDown{{Message: &peerproto.RelayDown_Unsent{Unsent: &peerproto.Unsent{Message: "no\x00room"}}}}, vedette.Failed, "nothing was done"},
		{"no agent", &peerproto.Agent{}, nil, vedette.Failed, "does not keep to the protocol"},
		{"another cluster", &peerproto.Agent{Id: "a", Cluster: &wire.Cluster{Uid: "another"}}, nil, vedette.Failed, "another cluster"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newInstallation(t, "s1")
			w.startLiar(&liar{offer: tt.offer, after: tt.after})
			op := vedette.Operation{ID: "op", Account: "prod", Args: restart, Cluster: clusterOf("prod"), Deadline: time.Now().Add(500 * time.Millisecond)}
			out := w.nodes["s1"].Execute(t.Context(), op)
			if out.ID != "op" || out.State != tt.want || !strings.Contains(out.Message, tt.message) {
				t.Errorf("got %+v, want %s: %s", out, tt.want, tt.message)
			}
			await(t, "the end is recorded", func() bool { return w.row("op").State == tt.want })
		})
	}
}

// TestOutcomeBeforeTheOperation takes the outcome of an operation for nothing that was not sent yet.
func TestOutcomeBeforeTheOperation(t *testing.T) {
	for _, m := range []*peerproto.RelayDown{piecesOf(t, vedette.Outcome{ID: "op", State: vedette.Done}), pieceOf(&peerproto.Piece{Log: true})} {
		in := inbound{remoteAgent: &remoteAgent{events: make(chan dispatch.RemoteEvent, 1)}, ctx: t.Context()}
		if err := in.handle(m); !errors.Is(err, errBadPeer) {
			t.Errorf("got %v", err)
		}
	}
}

// startLiar makes a server that lies the one of the account.
func (w *installation) startLiar(l *liar) {
	identity, err := NewIdentity()
	if err != nil {
		w.t.Fatal(err)
	}
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	w.members["liar"] = Peer{ID: "liar", Process: "1", Address: on.Addr().String(), Key: identity.Key()}
	w.accounts["prod"] = "liar"
	w.mu.Unlock()
	srv := grpc.NewServer(grpc.Creds(newServerCredentials(identity, w.nodes["s1"], newConnections(), slog.New(slog.DiscardHandler))), grpc.ForceServerCodecV2(wire.Codec()))
	peerproto.RegisterPeersServer(srv, l)
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(on) }()
	w.t.Cleanup(func() { srv.Stop(); <-served })
}

// rawCall is a call of Relay by hand.
type rawCall struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[peerproto.RelayUp, peerproto.RelayDown]
}

// call opens a call for an operation, from a server to another one.
func (w *installation) call(t *testing.T, from, to vedette.ServerID, open *peerproto.Open) rawCall {
	p, _ := w.nodes[from].Peer(to)
	client, err := w.nodes[from].client.dial(p)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := client.Relay(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := rawCall{t, stream}
	c.send(&peerproto.RelayUp{Message: &peerproto.RelayUp_Open{Open: open}})
	return c
}

func (c rawCall) send(m *peerproto.RelayUp) {
	if err := c.stream.Send(m); err != nil {
		c.t.Fatal(err)
	}
}

func (c rawCall) sendOperation(op vedette.Operation, timeout time.Duration, stamp int64) {
	c.sendOperationAt(time.Now(), op, timeout, stamp)
}

func (c rawCall) sendOperationAt(now time.Time, op vedette.Operation, timeout time.Duration, stamp int64) {
	op.Deadline = now.Add(timeout)
	encoded, err := wire.FromOperation(op, now)
	if err != nil {
		c.t.Fatal(err)
	}
	encoded.SentStamp = stamp
	c.send(down(&wire.OperationsDown{Message: &wire.OperationsDown_Operation{Operation: encoded}}))
}

func down(m *wire.OperationsDown) *peerproto.RelayUp {
	return &peerproto.RelayUp{Message: &peerproto.RelayUp_Down{Down: m}}
}

func (c rawCall) receive() *peerproto.RelayDown {
	c.t.Helper()
	m, err := c.stream.Recv()
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// TestDeadlineAfterAPause sends operations that were on their way for too long, whatever the sender says about when it sent them.
func TestDeadlineAfterAPause(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	a := w.newAgent("a", "1", "prod")
	a.connect(w.nodes["s2"])
	for i, tt := range []struct {
		name    string
		timeout time.Duration
		stamp   int64 // more than that of the offer
		held    time.Duration
		clock   time.Duration // how far that of the sender is ahead
		sent    bool
	}{
		{"in time", time.Minute, 0, 0, 0, true},
		{"a clock an hour ahead", time.Minute, 0, 0, time.Hour, true},
		{"a clock an hour behind", time.Minute, 0, 0, -time.Hour, true},
		{"sent at once, and held back", 50 * time.Millisecond, 0, 60 * time.Millisecond, 0, false},
		{"held back by a clock an hour ahead", 50 * time.Millisecond, 0, 60 * time.Millisecond, time.Hour, false},
		{"sent in the future", time.Second, 1 << 60, 0, 0, true},
		{"without a time limit", 0, 0, 0, 0, false},
	} {
		id := vedette.OperationID(fmt.Sprint("op", i))
		c := w.call(t, "s1", "s2", &peerproto.Open{Operation: string(id), Account: "prod"})
		offer := c.receive().GetAgent()
		held := time.Now()
		await(t, "the operation is held back", func() bool { return time.Since(held) > tt.held })
		op := vedette.Operation{ID: id, Account: "prod", Args: scale}
		if tt.timeout == 0 {
			encoded, err := wire.FromOperation(op, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			c.send(down(&wire.OperationsDown{Message: &wire.OperationsDown_Operation{Operation: encoded}}))
		} else {
			c.sendOperationAt(time.Now().Add(tt.clock), op, tt.timeout, offer.GetStamp()+tt.stamp)
		}
		m := c.receive()
		if sent := m.GetUnsent() == nil; sent != tt.sent || a.effects(id) > 0 != tt.sent {
			t.Errorf("%s: got %v and %d effects", tt.name, m, a.effects(id))
		}
		a.mu.Lock()
		if tt.sent {
			if remaining := time.Until(a.received[len(a.received)-1].Deadline); remaining > tt.timeout {
				t.Errorf("%s: %v remain of %v", tt.name, remaining, tt.timeout)
			}
		}
		a.mu.Unlock()
	}
}

// TestServersThatLie sends what no server sends. The agent gets nothing that was not announced.
func TestServersThatLie(t *testing.T) {
	w := newInstallation(t, "s1", "s2", "s3")
	a := w.newAgent("a", "1", "prod")
	b := w.newAgent("b", "1", "other")
	release := make(chan struct{})
	defer close(release)
	a.execute = func(op vedette.Operation) vedette.Outcome {
		<-release
		return vedette.Outcome{ID: op.ID, State: vedette.Done}
	}
	b.execute = a.execute
	a.connect(w.nodes["s2"])
	b.connect(w.nodes["s2"])
	expectUnsent := func(name string, c rawCall, message string) {
		t.Helper()
		if m := c.receive(); !strings.Contains(m.GetUnsent().GetMessage(), message) {
			t.Errorf("%s: got %v, want %q", name, m, message)
		}
	}
	opened := func(id string, documents uint64) rawCall {
		c := w.call(t, "s1", "s2", &peerproto.Open{Operation: id, Account: "prod", Documents: documents})
		if c.receive().GetAgent().GetId() != "a" {
			t.Fatal("got another agent")
		}
		return c
	}
	c := opened("1", 0)
	c.sendOperation(vedette.Operation{ID: "1", Account: "other", Args: scale}, time.Minute, 0)
	expectUnsent("another account", c, "not the one that was announced")
	c = opened("2", 0)
	c.sendOperation(vedette.Operation{ID: "3", Account: "prod", Args: scale}, time.Minute, 0)
	expectUnsent("another id", c, "not the one that was announced")
	c = opened("4", 10)
	c.sendOperation(vedette.Operation{ID: "4", Account: "prod", Args: vedette.ApplyArgs{Manifest: make([]byte, 11)}}, time.Minute, 0)
	expectUnsent("a larger manifest", c, "larger than was announced")
	c = opened("5", 0)
	c.send(down(&wire.OperationsDown{Message: &wire.OperationsDown_Operation{Operation: &wire.Operation{Id: "5", Account: "prod", TimeoutMillis: 1000}}}))
	expectUnsent("an unknown verb", c, "too old")
	c = w.call(t, "s1", "s2", &peerproto.Open{Operation: "7", Account: "nobody"})
	expectUnsent("an unknown account", c, "no agent")
	c = w.call(t, "s1", "s2", &peerproto.Open{Operation: "8\xff", Account: "prod"})
	if m, err := c.stream.Recv(); err == nil && m.GetAgent() == nil {
		t.Errorf("an id that is repaired: got %v", m)
	}
	c = opened("9", 0)
	c.sendOperation(vedette.Operation{ID: "9", Account: "prod", Args: restart}, time.Minute, 0)
	await(t, "the operation is sent", func() bool { return a.effects("9") == 1 })
	c.send(down(&wire.OperationsDown{Message: &wire.OperationsDown_Forget{Forget: &wire.Forget{Id: "9"}}})) // before there is an outcome
	third := w.call(t, "s3", "s2", &peerproto.Open{Operation: "9", Account: "prod"})
	third.receive()
	third.sendOperation(vedette.Operation{ID: "9", Account: "prod", Args: restart}, time.Minute, 0)
	expectUnsent("the operation of another server", third, "under way here for another server")
	c.sendOperation(vedette.Operation{ID: "9", Account: "prod", Args: restart}, time.Minute, 0)
	if m, err := c.stream.Recv(); err == nil {
		t.Errorf("a second operation: got %v", m)
	}
	for _, first := range []*peerproto.RelayUp{{}, down(&wire.OperationsDown{Message: &wire.OperationsDown_Cancel{Cancel: &wire.Cancel{Id: "9"}}})} {
		p, _ := w.nodes["s1"].Peer("s2")
		client, err := w.nodes["s1"].client.dial(p)
		if err != nil {
			t.Fatal(err)
		}
		stream, err := client.Relay(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := rawCall{t, stream}
		c.send(first)
		if m, err := c.stream.Recv(); err == nil {
			t.Errorf("%v comes first: got %v", first, m)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.received) != 1 {
		t.Errorf("the agent has got %d operations", len(a.received))
	}
}

// TestParts sends more parts than the announced documents have.
func TestParts(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	w.newAgent("a", "1", "prod").connect(w.nodes["s2"])
	c := w.call(t, "s1", "s2", &peerproto.Open{Operation: "op", Account: "prod"})
	c.receive()
	for range 2 * maxMessage / wire.MaxPiece {
		if c.stream.Send(down(&wire.OperationsDown{Message: &wire.OperationsDown_Part{Part: &wire.Part{Bytes: make([]byte, wire.MaxPiece)}}})) != nil {
			break
		}
	}
	if m, err := c.stream.Recv(); err == nil || !strings.Contains(err.Error(), "larger than was announced") {
		t.Errorf("got %v, %v", m, err)
	}
}
