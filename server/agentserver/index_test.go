package agentserver_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/wire"
)

// TestIndexOverSlowStream checks that an agent receives the stored digests even if they
// wait to be sent: of several feeds at once, and of one feed in more than eight
// messages. Older agents receive digests of the form that they compare with.
func TestIndexOverSlowStream(t *testing.T) {
	for name, named := range map[string]bool{"named digests": true, "older agent": false} {
		t.Run(name, func(t *testing.T) { testIndexOverSlowStream(t, named) })
	}
}

func testIndexOverSlowStream(t *testing.T, named bool) {
	kinds := []string{"Pod", "Service"}
	sizes := map[string]int{"Pod": 8*4096 + 1, "Service": 2*4096 + 1}
	dir := t.TempDir()
	st, err := store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(dir, "v.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	log := slog.New(slog.DiscardHandler)
	indexes := &indexCountingStore{Store: st, remaining: len(kinds), done: make(chan struct{})}
	srv := agentserver.New(agentserver.Config{ServerID: "s1", Heartbeat: time.Hour}, ingest.New(ingest.Config{}, indexes, ingest.NewHub(), log),
		assigner.New("s1", assignment.Config{}, st, accounts.New(accounts.Config{}, st, log), log), nil, log)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream := &slowStream{ctx: ctx, toServer: make(chan *wire.AgentMessage), toAgent: make(chan *wire.ServerMessage), unblock: indexes.done}
	var session sync.WaitGroup
	defer session.Wait()
	defer cancel()
	session.Go(func() { _ = srv.Connect(stream) })

	stream.handshake(t)
	term := stream.register(t)
	declare := &wire.Declare{}
	for _, kind := range kinds {
		declare.Feeds = append(declare.Feeds, &wire.DeclaredFeed{Feed: wireFeed(kind), Version: "v1"})
	}
	stream.sendRecord(t, &wire.Record{Account: "prod", Term: term, Step: &wire.Record_Declare{Declare: declare}})
	for stream.receive(t).GetAck().GetRecords() == 0 {
	}
	for kind, n := range sizes {
		insertObjects(t, filepath.Join(dir, "v.db"), kind, n)
	}
	for _, kind := range kinds {
		stream.sendRecord(t, &wire.Record{Account: "prod", Term: term, Feed: wireFeed(kind), Step: &wire.Record_Begin{Begin: &wire.Begin{NamedDigests: named}}})
	}
	got := map[string][]uint64{}
	for remaining := len(kinds); remaining > 0; {
		if i := stream.receive(t).GetIndex(); i != nil {
			kind := i.GetFeed().GetKind().GetName()
			got[kind] = append(got[kind], i.GetDigests()...)
			if i.GetLast() {
				remaining--
			}
		}
	}
	for _, kind := range kinds {
		var want []uint64
		for n := 1; n <= sizes[kind]; n++ {
			if name, version := fmt.Sprint("o", n), fmt.Sprint(kind, n); named {
				want = append(want, vedette.Digest("default", name, "", version))
			} else {
				want = append(want, vedette.DigestWithoutName("", version))
			}
		}
		slices.Sort(want)
		slices.Sort(got[kind])
		if !slices.Equal(got[kind], want) {
			t.Errorf("got %d digests of %s, %d of them distinct; want the %d stored ones",
				len(got[kind]), kind, len(slices.Compact(got[kind])), len(want))
		}
	}
}

func wireFeed(kind string) *wire.Feed { return &wire.Feed{Kind: &wire.Kind{Name: kind}} }

// indexCountingStore closes done after a number of indexes have been read.
type indexCountingStore struct {
	*store.Store
	mu        sync.Mutex
	remaining int
	done      chan struct{}
}

func (r *indexCountingStore) Index(ctx context.Context, account vedette.AccountName, feed vedette.Feed, yield func([]uint64) error) error {
	defer r.count()
	return r.Store.Index(ctx, account, feed, yield)
}

func (r *indexCountingStore) IndexWithoutNames(ctx context.Context, account vedette.AccountName, feed vedette.Feed, yield func([]uint64) error) error {
	defer r.count()
	return r.Store.IndexWithoutNames(ctx, account, feed, yield)
}

func (r *indexCountingStore) count() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remaining--
	if r.remaining == 0 {
		close(r.done)
	}
}

// slowStream is the server side of a stream that sends no index until it is opened.
// Like gRPC, it encodes a message when it is sent.
type slowStream struct {
	grpc.ServerStream
	ctx      context.Context
	toServer chan *wire.AgentMessage
	toAgent  chan *wire.ServerMessage
	unblock  chan struct{}
	writer   wire.Writer
}

func (l *slowStream) Context() context.Context { return l.ctx }

func (l *slowStream) Recv() (*wire.AgentMessage, error) {
	select {
	case m := <-l.toServer:
		return m, nil
	case <-l.ctx.Done():
		return nil, io.EOF
	}
}

func (l *slowStream) Send(m *wire.ServerMessage) error {
	if m.GetIndex() != nil {
		select {
		case <-l.unblock:
		case <-l.ctx.Done():
		}
	}
	select {
	case l.toAgent <- proto.CloneOf(m):
	case <-l.ctx.Done():
	}
	return l.ctx.Err()
}

func (l *slowStream) sendMessage(t *testing.T, m *wire.AgentMessage) {
	t.Helper()
	select {
	case l.toServer <- m:
	case <-l.ctx.Done():
		t.Fatal("the session ended early")
	}
}

func (l *slowStream) receive(t *testing.T) *wire.ServerMessage {
	t.Helper()
	select {
	case m := <-l.toAgent:
		return m
	case <-l.ctx.Done():
		t.Fatal("the session ended early")
		return nil
	}
}

func (l *slowStream) handshake(t *testing.T) {
	t.Helper()
	l.sendMessage(t, &wire.AgentMessage{Message: &wire.AgentMessage_Hello{Hello: &wire.Hello{OldestProtocol: 1, NewestProtocol: 1, AgentId: "a1"}}})
	if m := l.receive(t); m.GetWelcome() == nil {
		t.Fatalf("got %v, want Welcome", m)
	}
}

// register returns the term that the agent gets.
func (l *slowStream) register(t *testing.T) int64 {
	t.Helper()
	l.sendMessage(t, &wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: &wire.Register{
		Account: "prod", Cluster: &wire.Cluster{Uid: "u", Host: "https://u"}, Properties: []byte("{}")}}})
	a := l.receive(t).GetAssignment()
	if a.GetRole() != wire.Assignment_ROLE_CACHER {
		t.Fatalf("got the assignment %v, want cacher", a)
	}
	return a.GetTerm()
}

func (l *slowStream) sendRecord(t *testing.T, rec *wire.Record) {
	t.Helper()
	b, err := proto.Marshal(rec)
	if err == nil {
		err = l.writer.Write(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	pieces, err := l.writer.Flush()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range pieces {
		l.sendMessage(t, &wire.AgentMessage{Message: &wire.AgentMessage_Data{Data: proto.CloneOf(d)}})
	}
}

// insertObjects inserts rows directly, because the store would take a minute for as
// many objects.
func insertObjects(t *testing.T, file, kind string, n int) {
	t.Helper()
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO objects (account_id, kind_id, namespace, name, labelset, stored, uid, version, application, head, body)
		SELECT f.account_id, f.kind_id, 'default', 'o' || i, 0, 0, x'', k.name || i, '', x'', x'' FROM n, feeds f JOIN kinds k ON k.id = f.kind_id WHERE k.name = ?`, n, kind)
	if err != nil {
		t.Fatal(err)
	}
}
