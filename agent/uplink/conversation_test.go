package uplink

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/vedette-io/vedette"
	agentexecutor "github.com/vedette-io/vedette/agent/executor"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/wire"
)

// TestConversationsRunAsRecorded runs an uplink against scripted servers. A file of testdata is a script: each line in the first
// column is a command, and the indented lines below are all that follows from it.
func TestConversationsRunAsRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = runConversation(t, string(script)) })
			golden.Compare(t, file, got)
		})
	}
}

func runConversation(t *testing.T, script string) string {
	s := newStage(t)
	var out strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, " ") {
			continue
		}
		fmt.Fprintln(&out, line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s.command(strings.Fields(line))
		synctest.Wait()
		for _, event := range s.take() {
			fmt.Fprintln(&out, "  "+event)
		}
	}
	s.close()
	return out.String()
}

// stage is an uplink with its servers. It implements the uplink's observer.
type stage struct {
	t        *testing.T
	ctx      context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup
	box      *outbox.Box
	uplink   *Uplink
	executor *agentexecutor.Executor
	servers  map[string]*scriptedServer
	changes  int

	mu        sync.Mutex
	began     time.Time // of the last command
	events    []event
	target    string       // to which connections go
	term      int64        // of the account, in the store of all servers
	mark      vedette.Mark // of the account's feed
	connected int
	finish    map[vedette.OperationID]chan struct{}
}

func newStage(t *testing.T) *stage {
	ctx, stop := context.WithCancel(t.Context())
	s := &stage{t: t, ctx: ctx, stop: stop, box: outbox.New(1 << 20), servers: map[string]*scriptedServer{}, target: "s1",
		finish: map[vedette.OperationID]chan struct{}{}, began: time.Now()}
	for _, name := range []string{"s1", "s2"} {
		s.servers[name] = startScripted(s, name)
	}
	s.executor = agentexecutor.New(agentexecutor.Config{}, s.execute, func(out vedette.Outcome) { s.uplink.Answer(out) })
	backoff := Backoff{BaseDelay: new(time.Second), Multiplier: new(2.), Jitter: new(0.), MaxDelay: new(4 * time.Second)}
	s.uplink = New(Config{Target: "passthrough:///servers", Creds: insecure.NewCredentials(), Agent: "a", Process: "p", Backoff: backoff, Observer: s,
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(s.dial)}}, s.box, stageHandler{s}, boundExecutor{s.executor}, slog.New(slog.DiscardHandler))
	return s
}

// boundExecutor accepts deliveries of the uplink.
type boundExecutor struct{ *agentexecutor.Executor }

func (x boundExecutor) Submit(op vedette.Operation, d *Delivery) { x.Executor.Submit(op, d) }

func (s *stage) close() {
	s.stop()
	for _, server := range s.servers {
		server.grpc.Stop()
	}
	s.running.Wait()
}

func (s *stage) dial(context.Context, string) (net.Conn, error) {
	s.mu.Lock()
	target := s.target
	s.mu.Unlock()
	return s.servers[target].listener.Dial()
}

func (s *stage) record(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event{time.Since(s.began), fmt.Sprintf(format, args...)})
}

// event is what has happened some time after a command. The text begins with whom it has happened to.
type event struct {
	after time.Duration
	text  string
}

// take returns the events since the last call, in an order that does not depend on how fast those are to whom they happen at the same time.
func (s *stage) take() (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.events, func(a, b event) int {
		whom, other := strings.Fields(a.text)[0], strings.Fields(b.text)[0]
		if whom == "agent:" && other == whom {
			whom, other = a.text, b.text // several connections
		}
		return cmp.Or(cmp.Compare(a.after, b.after), strings.Compare(whom, other))
	})
	for _, e := range s.events {
		if e.after > 0 {
			e.text = fmt.Sprintf("after %v: %s", e.after.Round(time.Millisecond), e.text)
		}
		lines = append(lines, e.text)
	}
	s.events = nil
	return lines
}

func (s *stage) command(args []string) {
	s.mu.Lock()
	s.began = time.Now()
	s.mu.Unlock()
	server := s.servers[args[len(args)-1]]
	switch args[0] {
	case "start":
		if err := s.uplink.Register(vedette.Account{Name: "prod"}); err != nil {
			s.t.Fatal(err)
		}
		s.running.Go(func() { _ = s.executor.Run(s.ctx) })
		s.running.Go(func() { _ = s.uplink.Run(s.ctx) })
	case "stop":
		s.stop()
	case "wait":
		d, err := time.ParseDuration(args[1])
		if err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(d) // the bubble's clock
	case "direct-to":
		s.mu.Lock()
		s.target = args[1]
		s.mu.Unlock()
	case "change":
		s.change(args[1])
	case "finish":
		close(s.finish[vedette.OperationID(args[1])])
	case "refuse", "accept", "drain-at-once", "assign-early":
		server.set(args[0])
	case "drain": // drain [MILLISECONDS] SERVER
		d := &wire.Drain{Reason: "it stops"}
		if len(args) > 2 {
			millis, err := strconv.Atoi(args[1])
			if err != nil {
				s.t.Fatal(err)
			}
			d.AfterMillis = new(uint32(millis))
		}
		server.send(&wire.ServerMessage{Message: &wire.ServerMessage_Drain{Drain: d}})
	case "cut":
		close(server.current().cut)
	case "operation": // operation ID SERVER
		s.mu.Lock()
		s.finish[vedette.OperationID(args[1])] = make(chan struct{})
		s.mu.Unlock()
		server.sendOperation(args[1])
	case "send-again": // send-again ID SERVER
		server.sendOperation(args[1])
	default:
		s.t.Fatalf("unknown command %v", args)
	}
}

// change puts a change of an object into the outbox.
func (s *stage) change(name string) {
	s.changes++
	version := fmt.Sprint(s.changes)
	err := s.box.Put(s.ctx, outbox.Change{Account: "prod", Feed: podFeed, Priority: outbox.Live, Key: "default/" + name, Mark: vedette.Mark(version),
		Record: wire.EncodeUpsert(vedette.Object{Key: vedette.Key{Kind: podFeed.Kind, Namespace: "default", Name: name}, ResourceVersion: version}, true)})
	if err != nil {
		s.t.Fatal(err)
	}
}

var podFeed = vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}

// execute implements the handler of the executor.
func (s *stage) execute(ctx context.Context, op vedette.Operation, c *agentexecutor.Control) vedette.Outcome {
	s.record("agent: executes %s", op.ID)
	s.mu.Lock()
	finish := s.finish[op.ID]
	s.mu.Unlock()
	select {
	case <-finish:
	case <-ctx.Done():
	}
	if err := c.MayChange(ctx); err != nil {
		return vedette.Outcome{State: vedette.Failed, Message: err.Error()}
	}
	return vedette.Outcome{State: vedette.Done}
}

// Connected implements observer.
func (s *stage) Connected() { s.noteConnections(1) }

// Disconnected implements observer.
func (s *stage) Disconnected(reason string, wasEstablished bool) {
	s.record("agent: counts the end of a connection: %s, established %t", reason, wasEstablished)
	if wasEstablished {
		s.noteConnections(-1)
	}
}

func (s *stage) noteConnections(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connected += n; s.connected < 0 || s.connected > 1 {
		s.t.Errorf("%d connections count at once", s.connected)
	}
}

// Sent implements observer.
func (s *stage) Sent([]outbox.Change, int) {}

// stageHandler is the handler of a stage: its method Connected has other arguments than that of the observer.
type stageHandler struct{ *stage }

// Connected implements handler.
func (stageHandler) Connected(ServerSettings) {}

// Assigned implements handler.
func (h stageHandler) Assigned(a Assignment) {
	h.box.Recall(a.Account, a.Term)
	h.box.Open(a.Account, a.Term, a.Marks)
}

// Indexed implements handler.
func (stageHandler) Indexed(Index) {}

// VerifyAnswered implements handler.
func (stageHandler) VerifyAnswered(VerifyAnswer) {}

// scriptedServer is a server that assigns each account to the agent, and acknowledges what it gets.
type scriptedServer struct {
	wire.UnimplementedCachingServer
	wire.UnimplementedOperationsServer
	stage    *stage
	name     string
	listener *bufconn.Listener
	grpc     *grpc.Server

	mu       sync.Mutex
	mode     string
	sessions []*scriptedSession
}

// scriptedSession is a connection of the agent.
type scriptedSession struct {
	server     *scriptedServer
	name       string
	stream     grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]
	operations grpc.BidiStreamingServer[wire.OperationsUp, wire.OperationsDown]
	cut        chan struct{}
	welcomed   time.Time
	sendMu     sync.Mutex
	isReported bool // that it is alive
}

func startScripted(s *stage, name string) *scriptedServer {
	server := &scriptedServer{stage: s, name: name, listener: bufconn.Listen(1 << 20), grpc: grpc.NewServer(grpc.ForceServerCodecV2(wire.Codec()))}
	wire.RegisterCachingServer(server.grpc, server)
	wire.RegisterOperationsServer(server.grpc, server)
	go func() { _ = server.grpc.Serve(server.listener) }()
	return server
}

func (s *scriptedServer) set(mode string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = mode
}

func (s *scriptedServer) current() *scriptedSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[len(s.sessions)-1]
}

func (s *scriptedServer) send(m *wire.ServerMessage) { s.current().send(m) }

func (c *scriptedSession) send(m *wire.ServerMessage) {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	_ = c.stream.Send(m) // the connection may have ended
}

func (s *scriptedServer) sendOperation(id string) {
	c := s.current()
	op := vedette.Operation{ID: vedette.OperationID(id), Account: "prod", Args: vedette.ScaleArgs{}, Deadline: time.Now().Add(time.Minute)}
	encoded, err := wire.FromOperation(op, time.Now())
	if err != nil {
		s.stage.t.Fatal(err)
	}
	encoded.SentStamp = max(1, time.Since(c.welcomed).Milliseconds())
	_ = c.operations.Send(&wire.OperationsDown{Message: &wire.OperationsDown_Operation{Operation: encoded}})
}

// Connect implements wire.CachingServer.
func (s *scriptedServer) Connect(stream grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	s.mu.Lock()
	c := &scriptedSession{server: s, stream: stream, cut: make(chan struct{}), welcomed: time.Now(), name: fmt.Sprintf("%s#%d", s.name, len(s.sessions)+1)}
	mode := s.mode
	if mode != "refuse" {
		s.sessions = append(s.sessions, c)
	}
	s.mu.Unlock()
	if mode == "refuse" {
		s.stage.record("%s: refuses a connection", s.name)
		return status.Error(codes.Unavailable, "the server is stopping and accepts no agents")
	}
	s.stage.record("%s: welcomes the agent", c.name)
	c.send(&wire.ServerMessage{Message: &wire.ServerMessage_Welcome{Welcome: &wire.Welcome{Protocol: 1, ServerId: s.name, HeartbeatSeconds: 3,
		CreditBytes: 1 << 20, Session: c.name}}})
	switch mode {
	case "drain-at-once":
		time.Sleep(time.Millisecond) // so that it is always as late
		c.send(&wire.ServerMessage{Message: &wire.ServerMessage_Drain{Drain: &wire.Drain{Reason: "it stops", AfterMillis: new(uint32(0))}}})
	case "assign-early":
		c.assign("prod", 1000, nil)
	}
	go c.receiveRecords()
	return c.sendHeartbeats()
}

// sendHeartbeats sends heartbeats until the connection ends.
func (c *scriptedSession) sendHeartbeats() error {
	ticker := time.NewTicker(3 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-c.cut:
			c.server.stage.record("%s: cuts the connection", c.name)
			return status.Error(codes.Unavailable, "cut")
		case <-c.stream.Context().Done():
			c.server.stage.record("%s: the agent has left", c.name)
			return nil
		case <-ticker.C:
			c.send(&wire.ServerMessage{Message: &wire.ServerMessage_Heartbeat{Heartbeat: &wire.Heartbeat{Stamp: time.Since(c.welcomed).Milliseconds()}}})
		}
	}
}

// receiveRecords records the changes that arrive, and acknowledges them.
func (c *scriptedSession) receiveRecords() {
	records := wire.NewReader(c.nextData, &wire.DecoderPool{}, nil)
	defer records.Release()
	for n := uint64(1); ; n++ {
		var r wire.Record
		if _, err := records.Next(&r); err != nil {
			return
		}
		if u := r.GetUpsert(); u != nil {
			c.server.stage.stored(r.GetTerm(), vedette.Mark(u.GetResourceVersion()))
			c.server.stage.record("%s: change of %s @%s in term %d", c.name, u.GetName(), u.GetResourceVersion(), r.GetTerm())
		}
		c.send(&wire.ServerMessage{Message: &wire.ServerMessage_Ack{Ack: &wire.Ack{Records: n}}})
	}
}

// stored notes that the store has a change, unless it comes in an earlier term.
func (s *stage) stored(term int64, mark vedette.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if term == s.term {
		s.mark = mark
	}
}

// assigned returns the next term of the account, and its marks.
func (s *stage) assigned() (term int64, marks map[vedette.Feed]vedette.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term++
	if s.mark == "" {
		return s.term, nil
	}
	return s.term, map[vedette.Feed]vedette.Mark{podFeed: s.mark}
}

func (c *scriptedSession) nextData() (*wire.Data, error) {
	for {
		m, err := c.stream.Recv()
		if err != nil {
			return nil, err
		}
		switch m := m.GetMessage().(type) {
		case *wire.AgentMessage_Data:
			return m.Data, nil
		case *wire.AgentMessage_Register:
			term, marks := c.server.stage.assigned()
			c.server.stage.record("%s: %s is registered, and gets term %d", c.name, m.Register.GetAccount(), term)
			c.assign(m.Register.GetAccount(), term, marks)
		case *wire.AgentMessage_Alive:
			if !c.isReported {
				c.server.stage.record("%s: the agent is alive", c.name)
			}
			c.isReported = true
		}
	}
}

func (c *scriptedSession) assign(account string, term int64, marks map[vedette.Feed]vedette.Mark) {
	c.send(&wire.ServerMessage{Message: &wire.ServerMessage_Assignment{Assignment: &wire.Assignment{Account: account, Term: term,
		Role: wire.Assignment_ROLE_CACHER, Marks: wire.FromMarks(marks)}}})
}

// Serve implements wire.OperationsServer.
func (s *scriptedServer) Serve(stream grpc.BidiStreamingServer[wire.OperationsUp, wire.OperationsDown]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.sessions, func(c *scriptedSession) bool { return c.name == first.GetAttach().GetSession() })
	c := s.sessions[i]
	c.operations = stream
	s.mu.Unlock()
	for {
		m, err := stream.Recv()
		if err != nil {
			return nil
		}
		s.stage.record("%s: outcome of %s is %s", c.name, m.GetOutcome().GetId(), strings.ToLower(m.GetOutcome().GetState().String()))
		_ = stream.Send(&wire.OperationsDown{Message: &wire.OperationsDown_Forget{Forget: &wire.Forget{Id: m.GetOutcome().GetId()}}})
	}
}
