package agentserver_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/wire"
)

// TestConversationsRunAsRecorded runs scripted agents against a server with a store. A file of
// testdata is a script: each line in the first column is a command, and the indented
// lines below are all messages that follow from it.
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
			dir := t.TempDir()
			var got string
			synctest.Test(t, func(t *testing.T) { got = runScript(t, dir, string(script)) })
			golden.Compare(t, file, got)
		})
	}
}

func runScript(t *testing.T, dir, script string) string {
	s := newTestServer(t, dir)
	defer s.close()
	var out strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, " "):
			continue
		case line == "" || strings.HasPrefix(line, "#"):
			fmt.Fprintln(&out, line)
			continue
		}
		fmt.Fprintln(&out, line)
		s.runCommand(strings.Fields(line))
		synctest.Wait()
		for _, event := range s.takeEvents() {
			fmt.Fprintln(&out, "  "+event)
		}
	}
	return out.String()
}

// testServer is one server and its agents.
type testServer struct {
	t           *testing.T
	ctx         context.Context
	cancel      context.CancelFunc
	store       *store.Store
	marks       *heldMarks
	dispatch    *dispatch.Dispatcher
	assigner    *assigner.Registry
	agentServer *agentserver.Server
	grpcServer  *grpc.Server
	listener    *bufconn.Listener
	agents      map[string]*testAgent

	mu     sync.Mutex
	events []string
}

func newTestServer(t *testing.T, dir string) *testServer {
	ctx, cancel := context.WithCancel(context.Background())
	st, err := store.Open(ctx, sqldb.Config{URL: "sqlite:" + filepath.Join(dir, "v.db")})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	marks := &heldMarks{Store: st, held: make(chan struct{}, 1)}
	registry := assigner.New("s1", assignment.Config{}, marks, accounts.New(accounts.Config{}, st, log), log)
	hub := ingest.NewHub()
	dispatcher := dispatch.New(dispatch.Config{Server: "s1"}, registry, st, hub, log)
	go func() { _ = dispatcher.Run(ctx) }()
	go func() { _ = registry.Run(ctx) }()
	srv := agentserver.New(agentserver.Config{ServerID: "s1", Version: "1.0", Kinds: []string{"Pod"}},
		ingest.New(ingest.Config{}, st, hub, log), registry, dispatcher, log)
	s := &testServer{t: t, ctx: ctx, cancel: cancel, store: st, marks: marks, dispatch: dispatcher, assigner: registry, agentServer: srv, grpcServer: grpc.NewServer(agentserver.ServerOptions()...), listener: bufconn.Listen(1 << 20), agents: map[string]*testAgent{}}
	srv.Register(s.grpcServer)
	go func() { _ = s.grpcServer.Serve(s.listener) }()
	return s
}

// heldMarks is a store that reads marks slowly: not before they are released.
type heldMarks struct {
	*store.Store
	held chan struct{} // a lock; unlike a sync.Mutex, the bubble sees that it is waited for
}

func (m *heldMarks) Marks(ctx context.Context, account vedette.AccountName) ([]read.FeedStatus, error) {
	m.held <- struct{}{}
	defer func() { <-m.held }()
	return m.Store.Marks(ctx, account)
}

func (ts *testServer) close() {
	for _, p := range ts.agents {
		p.disconnect()
	}
	ts.cancel()
	ts.grpcServer.Stop()
	ts.assigner.Close()
	synctest.Wait()
	if err := ts.store.Close(); err != nil {
		ts.t.Error(err)
	}
}

func (ts *testServer) record(format string, args ...any) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.events = append(ts.events, fmt.Sprintf(format, args...))
}

// takeEvents returns the events since the last call, in an order that does not depend
// on the speed of the agents.
func (ts *testServer) takeEvents() []string {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	events := ts.events
	ts.events = nil
	slices.SortStableFunc(events, func(a, b string) int {
		return strings.Compare(strings.SplitN(a, " ", 2)[0], strings.SplitN(b, " ", 2)[0])
	})
	return dropSupersededAcks(events)
}

// dropSupersededAcks removes acknowledgements that a later one of the same agent
// supersedes, because their number depends on the speed of the store.
func dropSupersededAcks(lines []string) (kept []string) {
	for i, line := range lines {
		agent, _, ack := strings.Cut(line, " receives ack ")
		if ack && slices.ContainsFunc(lines[i+1:], func(later string) bool { return strings.HasPrefix(later, agent+" receives ack ") }) {
			continue
		}
		kept = append(kept, line)
	}
	return kept
}

func (ts *testServer) now() time.Time { return time.Now() }

func (ts *testServer) runCommand(args []string) {
	switch args[0] {
	case "rows":
		ts.recordRows(args[1])
		return
	case "messages":
		ts.recordMessages(args[1])
		return
	case "account":
		ts.recordAccount(args[1])
		return
	case "wait":
		d, err := time.ParseDuration(args[1])
		if err != nil {
			ts.t.Fatal(err)
		}
		time.Sleep(d) // the bubble's clock
		return
	case "hold-marks":
		ts.marks.held <- struct{}{}
		return
	case "release-marks":
		<-ts.marks.held
		return
	case "stop-accepting":
		ts.agentServer.StopAccepting()
		return
	case "drain":
		go ts.agentServer.Drain(ts.ctx, "the server is stopping")
		return
	case "notices":
		ts.recordNotices()
		return
	case "account-errors":
		ts.recordAccountErrors(args[1])
		return
	case "kinds":
		ts.agentServer.SetKinds(ts.ctx, args[1:])
		return
	case "configs":
		ts.recordConfigs()
		return
	case "execute":
		ts.startOperation(args[1], args[2], args[3])
		return
	}
	name := args[1]
	if args[0] == "connect" {
		ts.agents[name] = ts.connect(name, args[2:])
		return
	}
	for i, w := range args {
		w = strings.ReplaceAll(w, "LONG", strings.Repeat("long", 100_000))
		if unescaped, err := url.PathUnescape(w); err == nil {
			args[i] = unescaped
		}
	}
	ts.agents[name].runCommand(args[0], args[2:])
}

// recordAccount records the stored account and the roles that operators see.
func (ts *testServer) recordAccount(name string) {
	row, err := ts.store.Account(ts.ctx, vedette.AccountName(name))
	if err != nil {
		ts.record("error: %v", err)
		return
	}
	ts.record("environment %s, %s", row.Properties.Environment, row.Properties.Permissions)
	for _, m := range ts.assigner.Members() {
		if a, ok := m.Roles()[row.Name]; ok {
			ts.record("%s", strings.TrimSpace(fmt.Sprintf("%s is shown as %s %s", m.ID, a.Role, a.Message)))
		}
	}
}

// recordNotices records what is wrong with agents, without the times in it.
func (ts *testServer) recordNotices() {
	for _, m := range ts.assigner.Members() {
		notice, _, _ := strings.Cut(m.Notice(), "connected since")
		ts.record("%s on a connection: %q", m.ID, notice)
	}
}

// recordAccountErrors records the messages about an account.
func (ts *testServer) recordAccountErrors(account string) {
	for _, m := range ts.assigner.Members() {
		if role := m.Roles()[vedette.AccountName(account)]; role.Message != "" {
			ts.record("%s: %s %s: %q", m.ID, account, role.Role, role.Message)
		}
	}
}

// recordConfigs records which configurations operators see.
func (ts *testServer) recordConfigs() {
	for _, m := range ts.assigner.Members() {
		c, age := m.Config(), time.Duration(0)
		if !c.Since.IsZero() {
			age = time.Since(c.Since)
		}
		ts.record("%s: for %s, current %t, %q %q", m.ID, age, c.Current, c.Reason, c.Message)
	}
}

// recordRows records the stored objects and feeds of an account.
func (ts *testServer) recordRows(account string) {
	page, err := ts.store.Objects(ts.ctx, read.Query{Accounts: []vedette.AccountName{vedette.AccountName(account)}, Bodies: true})
	if err != nil {
		ts.record("error: %v", err)
		return
	}
	for _, row := range page.Items {
		ts.record("%s @%s %s", row.Key, row.ResourceVersion, row.Body)
	}
	feeds, err := ts.store.Feeds(ts.ctx, vedette.AccountName(account))
	if err != nil {
		ts.record("error: %v", err)
	}
	for _, f := range feeds {
		ts.record("feed %s is %s at %q with %d objects", f.Feed, f.State, f.Mark, f.Objects)
	}
}

// recordMessages records the messages of an account's feeds.
func (ts *testServer) recordMessages(account string) {
	feeds, err := ts.store.Feeds(ts.ctx, vedette.AccountName(account))
	if err != nil {
		ts.record("error: %v", err)
	}
	for _, f := range feeds {
		ts.record("feed %s: %q and %d more bytes", f.Feed, f.Message[:min(len(f.Message), 200)], max(0, len(f.Message)-200))
	}
}

// testAgent is one scripted agent.
type testAgent struct {
	stage  *testServer
	name   string
	conn   *grpc.ClientConn
	stream grpc.BidiStreamingClient[wire.AgentMessage, wire.ServerMessage]
	ctx    context.Context // of all its streams
	cancel context.CancelFunc
	writer wire.Writer
	terms  map[string]int64
	asked  uint32      // the interval of Alive that the last heartbeat asked for
	talks  atomic.Bool // it sends Alive
	frozen atomic.Bool // it sends none for now

	session    string // from Welcome
	operations grpc.BidiStreamingClient[wire.OperationsUp, wire.OperationsDown]
}

func (ts *testServer) connect(name string, options []string) *testAgent {
	conn, err := grpc.NewClient("passthrough:///stage", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec())),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return ts.listener.Dial() }))
	if err != nil {
		ts.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ts.ctx)
	stream, err := wire.NewCachingClient(conn).Connect(ctx)
	if err != nil {
		ts.t.Fatal(err)
	}
	p := &testAgent{stage: ts, name: name, conn: conn, stream: stream, ctx: ctx, cancel: cancel, terms: map[string]int64{}}
	hello := &wire.Hello{OldestProtocol: 1, NewestProtocol: 1, AgentId: name, AgentVersion: "1.0"}
	for _, w := range options {
		if _, err := fmt.Sscanf(w, "protocol=%d", &hello.OldestProtocol); err == nil {
			hello.NewestProtocol = hello.OldestProtocol
		}
		if process, ok := strings.CutPrefix(w, "process="); ok {
			hello.Process = process
		}
		if id, ok := strings.CutPrefix(w, "as="); ok {
			hello.AgentId, _ = url.PathUnescape(strings.ReplaceAll(id, "LONG", strings.Repeat("long", 100)))
		}
	}
	if !slices.Contains(options, "without-hello") {
		_ = stream.Send(&wire.AgentMessage{Message: &wire.AgentMessage_Hello{Hello: hello}}) // receive records the error
	}
	go p.receive()
	return p
}

func (ta *testAgent) send(m *wire.AgentMessage) {
	if err := ta.stream.Send(m); err != nil {
		ta.stage.record("%s can't send: %v", ta.name, err)
	}
}

func (ta *testAgent) disconnect() {
	ta.cancel()
	_ = ta.conn.Close()
}

func (ta *testAgent) receive() {
	for {
		m, err := ta.stream.Recv()
		if err != nil {
			ta.stage.record("%s's stream ended: %s", ta.name, status.Convert(err).Message())
			return
		}
		if beat := m.GetHeartbeat(); beat == nil {
			ta.stage.record("%s receives %s", ta.name, ta.describe(m))
		} else if ta.talks.Load() && beat.GetAliveMillis() != ta.asked {
			ta.asked = beat.GetAliveMillis()
			ta.stage.record("%s is asked to show every %d ms that it is alive", ta.name, ta.asked)
		}
	}
}

func (ta *testAgent) describe(m *wire.ServerMessage) string {
	switch m := m.GetMessage().(type) {
	case *wire.ServerMessage_Welcome:
		ta.session = m.Welcome.GetSession()
		return fmt.Sprintf("welcome to %s, protocol %d, kinds %v", m.Welcome.GetServerId(), m.Welcome.GetProtocol(), m.Welcome.GetKinds())
	case *wire.ServerMessage_Assignment:
		a := m.Assignment
		ta.terms[a.GetAccount()] = a.GetTerm()
		marks := map[string]string{}
		for feed, mark := range wire.ToMarks(a.GetMarks()) {
			marks[feed.String()] = string(mark)
		}
		return strings.TrimSpace(fmt.Sprintf("%s: %s term %d marks %v %s", a.GetAccount(), strings.ToLower(strings.TrimPrefix(a.GetRole().String(), "ROLE_")), a.GetTerm(), marks, a.GetMessage()))
	case *wire.ServerMessage_Drain:
		d := m.Drain
		return fmt.Sprintf("drain after %d ms, stays open %t: %s", d.GetAfterMillis(), d.GetStaysOpen(), d.GetReason())
	case *wire.ServerMessage_Ack:
		return fmt.Sprintf("ack %d", m.Ack.GetRecords())
	case *wire.ServerMessage_Index:
		return fmt.Sprintf("index of %s %s: %d digests, last %v", m.Index.GetAccount(), wire.ToFeed(m.Index.GetFeed()), len(m.Index.GetDigests()), m.Index.GetLast())
	}
	return m.String()
}

func (ta *testAgent) runCommand(verb string, args []string) {
	switch verb {
	case "register":
		ta.register(args)
	case "deregister":
		ta.send(&wire.AgentMessage{Message: &wire.AgentMessage_Deregister{Deregister: &wire.Deregister{Account: args[0]}}})
	case "account-error":
		ta.send(&wire.AgentMessage{Message: &wire.AgentMessage_AccountError{AccountError: &wire.AccountError{Account: args[0], Message: strings.Join(args[1:], " ")}}})
	case "config":
		ta.sendConfig(args)
	case "disconnect":
		ta.disconnect()
	case "alive":
		ta.showAlive(args)
	case "freeze":
		ta.frozen.Store(true)
	case "continue":
		ta.frozen.Store(false)
	case "attach":
		ta.attachOperations(args)
	case "answer":
		ta.sendOutcome(args[0], args[1:])
	case "garbage":
		ta.send(&wire.AgentMessage{Message: &wire.AgentMessage_Data{Data: &wire.Data{Zstd: []byte("garbage")}}})
	default:
		ta.sendRecord(verb, args)
	}
}

// sendConfig sends the status of a configuration: age current reason message.
func (ta *testAgent) sendConfig(args []string) {
	age, err := time.ParseDuration(args[0])
	if err != nil {
		ta.stage.t.Fatal(err)
	}
	ta.send(&wire.AgentMessage{Message: &wire.AgentMessage_ConfigStatus{ConfigStatus: &wire.ConfigStatus{
		AgeMillis: age.Milliseconds(), Current: args[1] == "true", Reason: args[2], Message: strings.Join(args[3:], " ")}}})
}

func (ta *testAgent) register(args []string) {
	properties, err := json.Marshal(map[string]any{})
	if err != nil {
		ta.stage.t.Fatal(err)
	}
	r := &wire.Register{Account: args[0], Cluster: &wire.Cluster{Uid: args[1], Host: "https://" + args[1]}, Properties: properties}
	if len(args) > 2 {
		r.Properties = []byte(strings.Join(args[2:], " "))
	}
	ta.send(&wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: r}})
}

// showAlive sends Alive at an interval until the agent disconnects.
func (ta *testAgent) showAlive(args []string) {
	interval, err := time.ParseDuration(args[0])
	if err != nil {
		ta.stage.t.Fatal(err)
	}
	ta.talks.Store(true)
	go func() {
		for ta.ctx.Err() == nil {
			if !ta.frozen.Load() {
				ta.send(&wire.AgentMessage{Message: &wire.AgentMessage_Alive{Alive: &wire.Alive{IntervalMillis: uint32(interval.Milliseconds())}}})
			}
			select {
			case <-time.After(interval):
			case <-ta.ctx.Done():
			}
		}
	}()
}

// sendRecord sends one record: verb account [name[@version]] [term=N] [uid=UID] [kind=KIND].
func (ta *testAgent) sendRecord(verb string, args []string) {
	rec := &wire.Record{Account: args[0], Term: ta.terms[args[0]], Feed: &wire.Feed{Kind: &wire.Kind{Name: "Pod"}}}
	var name, version, uid string
	for _, w := range args[1:] {
		switch option, value, _ := strings.Cut(w, "="); option {
		case "term":
			_, _ = fmt.Sscan(value, &rec.Term)
		case "uid":
			uid = value
		case "kind":
			rec.Feed.Kind.Name = value
		default:
			name, version, _ = strings.Cut(w, "@")
		}
	}
	upsert := &wire.Upsert{Namespace: "default", Name: name, Uid: cmp.Or(uid, "uid-"+name), ResourceVersion: version, ApiVersion: "v1", Body: []byte(`{"v":` + version + `}`)}
	switch verb {
	case "declare":
		rec.Feed, rec.Step = nil, &wire.Record_Declare{Declare: &wire.Declare{Feeds: []*wire.DeclaredFeed{
			{Feed: &wire.Feed{Kind: &wire.Kind{Name: "Pod"}}, Version: "v1", Plural: "pods", Namespaced: true}}}}
	case "begin":
		rec.Step = &wire.Record_Begin{Begin: &wire.Begin{}}
	case "item":
		rec.Step = &wire.Record_Upsert{Upsert: upsert}
	case "live":
		upsert.Live = true
		rec.Step = &wire.Record_Upsert{Upsert: upsert}
	case "delete":
		rec.Step = &wire.Record_Delete{Delete: &wire.Delete{Namespace: "default", Name: name, ResourceVersion: version}}
	case "drop":
		rec.Step = &wire.Record_Drop{Drop: &wire.Drop{Digests: []uint64{vedette.Digest("", name, "uid-"+name, version)}}}
	case "end":
		rec.Step = &wire.Record_End{End: &wire.End{ResourceVersion: version}}
	case "status":
		rec.Step = &wire.Record_Status{Status: &wire.Status{State: name, Message: "for a reason"}}
	case "heartbeat", "idle": // idle ends the frame
		rec.Account, rec.Term, rec.Feed, rec.Step = "", 0, nil, &wire.Record_Heartbeat{Heartbeat: &wire.AgentHeartbeat{UnixMillis: time.Now().UnixMilli()}}
	default:
		ta.stage.t.Fatalf("unknown verb %q; known are %v", verb, slices.Sorted(maps.Keys(ta.terms)))
	}
	if verb == "idle" {
		ta.sendData(rec, ta.writer.Close)
		return
	}
	ta.sendData(rec, ta.writer.Flush)
}

func (ta *testAgent) sendData(rec *wire.Record, flush func() ([]*wire.Data, error)) {
	b, err := wire.Marshal(rec)
	if err != nil {
		ta.stage.t.Fatal(err)
	}
	if err := ta.writer.Write(b); err != nil {
		ta.stage.t.Fatal(err)
	}
	pieces, err := flush()
	if err != nil {
		ta.stage.t.Fatal(err)
	}
	for _, d := range pieces {
		ta.send(&wire.AgentMessage{Message: &wire.AgentMessage_Data{Data: &wire.Data{Zstd: bytes.Clone(d.GetZstd()), EndOfFrame: d.GetEndOfFrame()}}})
	}
}
