package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
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
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/gate"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/roster"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/wire"
)

var rewrite = flag.Bool("rewrite", false, "write what the conversations say now into testdata")

// TestConversations plays agents against a gate with all that stands behind it.
// A file of testdata is a script: each line in the first column is a deed, the
// indented lines below it are all messages that followed from it.
func TestConversations(t *testing.T) {
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
			synctest.Test(t, func(t *testing.T) { got = play(t, dir, string(script)) })
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got != string(script) {
				t.Errorf("the conversation went another way:\n%s", got)
			}
		})
	}
}

func play(t *testing.T, dir, script string) string {
	s := newStage(t, dir)
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
		s.do(strings.Fields(line))
		synctest.Wait()
		for _, said := range s.said() {
			fmt.Fprintln(&out, "  "+said)
		}
	}
	return out.String()
}

// stage is one server and the agents that talk to it.
type stage struct {
	t        *testing.T
	ctx      context.Context
	stop     context.CancelFunc
	store    *store.Store
	dispatch *dispatch.Dispatch
	seats    *roster.Roster
	door     *gate.Gate
	server   *grpc.Server
	listen   *bufconn.Listener
	agents   map[string]*player

	mu    sync.Mutex
	lines []string
}

func newStage(t *testing.T, dir string) *stage {
	ctx, stop := context.WithCancel(context.Background())
	st, err := store.Open(ctx, store.Config{URL: "sqlite:" + filepath.Join(dir, "v.db")})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	seats := roster.New("s1", st, accounts.New(accounts.Config{}, st, log), log)
	hub := ingest.NewHub()
	desk := dispatch.New(dispatch.Config{Server: "s1"}, seats, st, hub, log)
	go func() { _ = desk.Run(ctx) }()
	go func() { _ = seats.Run(ctx) }()
	door := gate.New(gate.Config{Server: "s1", Version: "1.0", Kinds: []string{"Pod"}},
		ingest.New(ingest.Config{}, st, hub, log), seats, desk, log)
	s := &stage{t: t, ctx: ctx, stop: stop, store: st, dispatch: desk, seats: seats, door: door, server: grpc.NewServer(gate.ServerOptions()...), listen: bufconn.Listen(1 << 20), agents: map[string]*player{}}
	door.Serve(s.server)
	go func() { _ = s.server.Serve(s.listen) }()
	return s
}

func (s *stage) close() {
	for _, p := range s.agents {
		p.cut()
	}
	s.stop()
	s.server.Stop()
	synctest.Wait()
	if err := s.store.Close(); err != nil {
		s.t.Error(err)
	}
}

func (s *stage) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// said returns what was said since the last call, in an order that does not
// depend on which agent was quicker.
func (s *stage) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Compare(strings.SplitN(a, " ", 2)[0], strings.SplitN(b, " ", 2)[0])
	})
	return lastAcks(lines)
}

// lastAcks leaves out acknowledgements that a later one of the same agent follows:
// how many there are depends on how quick the store was.
func lastAcks(lines []string) (kept []string) {
	for i, line := range lines {
		who, _, ack := strings.Cut(line, " hears ack ")
		if ack && slices.ContainsFunc(lines[i+1:], func(later string) bool { return strings.HasPrefix(later, who+" hears ack ") }) {
			continue
		}
		kept = append(kept, line)
	}
	return kept
}

func (s *stage) now() time.Time { return time.Now() }

func (s *stage) do(words []string) {
	switch words[0] {
	case "rows":
		s.rows(words[1])
		return
	case "account":
		s.account(words[1])
		return
	case "wait":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(d) // the bubble's clock
		return
	case "drain":
		s.door.Drain()
		return
	case "goodbye":
		go s.door.Goodbye(s.ctx, "the server is going away")
		return
	case "troubles":
		s.troubles(words[1])
		return
	case "ask":
		s.ask(words[1], words[2], words[3])
		return
	}
	name := words[1]
	if words[0] == "connect" {
		s.agents[name] = s.connect(name, words[2:])
		return
	}
	for i, w := range words {
		w = strings.ReplaceAll(w, "LONG", strings.Repeat("long", 100_000))
		if unescaped, err := url.PathUnescape(w); err == nil {
			words[i] = unescaped
		}
	}
	s.agents[name].do(words[0], words[2:])
}

// account says what the store has of an account itself, and what operators are
// shown of its agents.
func (s *stage) account(name string) {
	row, err := s.store.Account(s.ctx, vedette.AccountName(name))
	if err != nil {
		s.say("error: %v", err)
		return
	}
	s.say("environment %s, %s", row.Properties.Environment, row.Properties.Permissions)
	for _, m := range s.seats.Members() {
		if a, ok := m.Roles()[row.Name]; ok {
			s.say("%s", strings.TrimSpace(fmt.Sprintf("%s is shown as %s %s", m.ID, a.Role, a.Message)))
		}
	}
}

// troubles says what the roster has of an account that can't be reported.
func (s *stage) troubles(account string) {
	for _, m := range s.seats.Members() {
		if role := m.Roles()[vedette.AccountName(account)]; role.Message != "" {
			s.say("%s: %s %s: %q", m.ID, account, role.Role, role.Message)
		}
	}
}

// rows says what the store has of an account.
func (s *stage) rows(account string) {
	page, err := s.store.Objects(s.ctx, store.Query{Accounts: []vedette.AccountName{vedette.AccountName(account)}, Bodies: true})
	if err != nil {
		s.say("error: %v", err)
		return
	}
	for _, row := range page.Items {
		s.say("%s @%s %s", row.Key, row.ResourceVersion, row.Body)
	}
	feeds, err := s.store.Feeds(s.ctx, vedette.AccountName(account))
	if err != nil {
		s.say("error: %v", err)
	}
	for _, f := range feeds {
		s.say("feed %s is %s at %q with %d objects", f.Feed, f.State, f.Mark, f.Objects)
	}
}

// player is one scripted agent.
type player struct {
	stage  *stage
	name   string
	conn   *grpc.ClientConn
	stream grpc.BidiStreamingClient[wire.AgentMessage, wire.ServerMessage]
	ctx    context.Context // of all its streams
	cancel context.CancelFunc
	writer wire.Writer
	terms  map[string]int64

	session    string // as it was welcomed
	operations grpc.BidiStreamingClient[wire.OperationsUp, wire.OperationsDown]
}

func (s *stage) connect(name string, words []string) *player {
	conn, err := grpc.NewClient("passthrough:///stage", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec())),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return s.listen.Dial() }))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	stream, err := wire.NewCachingClient(conn).Connect(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	p := &player{stage: s, name: name, conn: conn, stream: stream, ctx: ctx, cancel: cancel, terms: map[string]int64{}}
	hello := &wire.Hello{OldestProtocol: 1, NewestProtocol: 1, AgentId: name, AgentVersion: "1.0"}
	for _, w := range words {
		if _, err := fmt.Sscanf(w, "protocol=%d", &hello.OldestProtocol); err == nil {
			hello.NewestProtocol = hello.OldestProtocol
		}
		if id, ok := strings.CutPrefix(w, "as="); ok {
			hello.AgentId, _ = url.PathUnescape(strings.ReplaceAll(id, "LONG", strings.Repeat("long", 100)))
		}
	}
	if !slices.Contains(words, "silently") {
		_ = stream.Send(&wire.AgentMessage{Message: &wire.AgentMessage_Hello{Hello: hello}}) // listen says why it can't
	}
	go p.listen()
	return p
}

func (p *player) send(m *wire.AgentMessage) {
	if err := p.stream.Send(m); err != nil {
		p.stage.say("%s can't send: %v", p.name, err)
	}
}

func (p *player) cut() {
	p.cancel()
	_ = p.conn.Close()
}

func (p *player) listen() {
	for {
		m, err := p.stream.Recv()
		if err != nil {
			p.stage.say("%s's stream ended: %s", p.name, status.Convert(err).Message())
			return
		}
		if m.GetPulse() == nil {
			p.stage.say("%s hears %s", p.name, p.describe(m))
		}
	}
}

func (p *player) describe(m *wire.ServerMessage) string {
	switch m := m.GetMessage().(type) {
	case *wire.ServerMessage_Welcome:
		p.session = m.Welcome.GetSession()
		return fmt.Sprintf("welcome to %s, protocol %d, kinds %v", m.Welcome.GetServerId(), m.Welcome.GetProtocol(), m.Welcome.GetKinds())
	case *wire.ServerMessage_Assignment:
		a := m.Assignment
		p.terms[a.GetAccount()] = a.GetTerm()
		marks := map[string]string{}
		for feed, mark := range wire.ToMarks(a.GetMarks()) {
			marks[feed.String()] = string(mark)
		}
		return strings.TrimSpace(fmt.Sprintf("%s: %s term %d marks %v %s", a.GetAccount(), strings.ToLower(strings.TrimPrefix(a.GetRole().String(), "ROLE_")), a.GetTerm(), marks, a.GetMessage()))
	case *wire.ServerMessage_Ack:
		return fmt.Sprintf("ack %d", m.Ack.GetRecords())
	case *wire.ServerMessage_Index:
		return fmt.Sprintf("index of %s %s: %d digests, last %v", m.Index.GetAccount(), wire.ToFeed(m.Index.GetFeed()), len(m.Index.GetDigests()), m.Index.GetLast())
	}
	return m.String()
}

func (p *player) do(verb string, words []string) {
	switch verb {
	case "register":
		p.register(words)
	case "deregister":
		p.send(&wire.AgentMessage{Message: &wire.AgentMessage_Deregister{Deregister: &wire.Deregister{Account: words[0]}}})
	case "trouble":
		p.send(&wire.AgentMessage{Message: &wire.AgentMessage_Trouble{Trouble: &wire.Trouble{Account: words[0], Message: strings.Join(words[1:], " ")}}})
	case "cut":
		p.cut()
	case "attach":
		p.attach(words)
	case "answer":
		p.answer(words[0], words[1:])
	case "garbage":
		p.send(&wire.AgentMessage{Message: &wire.AgentMessage_Data{Data: &wire.Data{Zstd: []byte("garbage")}}})
	default:
		p.record(verb, words)
	}
}

func (p *player) register(words []string) {
	properties, err := json.Marshal(map[string]any{})
	if err != nil {
		p.stage.t.Fatal(err)
	}
	r := &wire.Register{Account: words[0], Cluster: &wire.Cluster{Uid: words[1], Host: "https://" + words[1]}, Properties: properties}
	if len(words) > 2 {
		r.Properties = []byte(strings.Join(words[2:], " "))
	}
	p.send(&wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: r}})
}

// record sends one record: verb account [name[@version]] [term=N].
func (p *player) record(verb string, words []string) {
	rec := &wire.Record{Account: words[0], Term: p.terms[words[0]], Feed: &wire.Feed{Kind: &wire.Kind{Name: "Pod"}}}
	var name, version string
	for _, w := range words[1:] {
		if _, err := fmt.Sscanf(w, "term=%d", &rec.Term); err != nil {
			name, version, _ = strings.Cut(w, "@")
		}
	}
	upsert := &wire.Upsert{Namespace: "default", Name: name, Uid: "uid-" + name, ResourceVersion: version, ApiVersion: "v1", Body: []byte(`{"v":` + version + `}`)}
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
		rec.Step = &wire.Record_Drop{Drop: &wire.Drop{Digests: []uint64{vedette.Digest("uid-"+name, version)}}}
	case "end":
		rec.Step = &wire.Record_End{End: &wire.End{ResourceVersion: version}}
	case "status":
		rec.Step = &wire.Record_Status{Status: &wire.Status{State: name, Message: "for a reason"}}
	case "pulse":
		rec.Account, rec.Term, rec.Feed, rec.Step = "", 0, nil, &wire.Record_Pulse{Pulse: &wire.AgentPulse{UnixMillis: time.Now().UnixMilli()}}
	default:
		p.stage.t.Fatalf("unknown verb %q; known are %v", verb, slices.Sorted(maps.Keys(p.terms)))
	}
	p.write(rec)
}

func (p *player) write(rec *wire.Record) {
	b, err := wire.Marshal(rec)
	if err != nil {
		p.stage.t.Fatal(err)
	}
	if err := p.writer.Write(b); err != nil {
		p.stage.t.Fatal(err)
	}
	pieces, err := p.writer.Flush()
	if err != nil {
		p.stage.t.Fatal(err)
	}
	for _, d := range pieces {
		p.send(&wire.AgentMessage{Message: &wire.AgentMessage_Data{Data: &wire.Data{Zstd: bytes.Clone(d.GetZstd())}}})
	}
}
