package hostile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// attackSession is one session of a hostile agent.
type attackSession struct {
	*attacker
	conn   *grpc.ClientConn
	stream grpc.BidiStreamingClient[wire.AgentMessage, wire.ServerMessage]
	token  string

	mu     sync.Mutex // guards writer, and the order of what it wrote
	writer wire.Writer
}

// connectSession sends a hello and returns the session, or nil if the server rejects it.
func (a *attacker) connectSession(conn *grpc.ClientConn, agentID string) *attackSession {
	s := &attackSession{attacker: a, conn: conn}
	var err error
	s.stream, err = wire.NewCachingClient(conn).Connect(a.ctx)
	if err != nil {
		return nil
	}
	s.send(&wire.AgentMessage{Message: &wire.AgentMessage_Hello{Hello: &wire.Hello{OldestProtocol: 1, NewestProtocol: 2, AgentId: agentID}}})
	m, err := s.stream.Recv()
	if err != nil {
		return nil
	}
	s.token = m.GetWelcome().GetSession()
	return s
}

// registerAccount registers an account that the attacker may report, and returns its term.
func (s *attackSession) registerAccount(account string) int64 {
	s.send(registration(account))
	for {
		m, err := s.stream.Recv()
		if err != nil {
			return 0
		}
		if a := m.GetAssignment(); a != nil {
			return a.GetTerm()
		}
	}
}

// joinWithAccount connects with a connection and an account of its own.
func (a *attacker) joinWithAccount(id, account string) *attackSession {
	s := a.connectSession(a.connect(), id)
	if s != nil {
		s.registerAccount(account)
		go s.discardMessages()
	}
	return s
}

// discardMessages receives the server's messages, so that the server can send more.
func (s *attackSession) discardMessages() {
	for {
		if _, err := s.stream.Recv(); err != nil {
			return
		}
	}
}

func (s *attackSession) send(m *wire.AgentMessage) bool { return s.stream.Send(m) == nil }

// sendRecord sends a record, valid or not.
func (s *attackSession) sendRecord(rec *wire.Record) bool {
	b, err := wire.Marshal(rec)
	if err != nil {
		return false
	}
	return s.sendRaw(b)
}

func (s *attackSession) sendRaw(record []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.writer.Write(record) // writes to memory
	pieces, _ := s.writer.Flush()
	for _, d := range pieces {
		if !s.send(data(d.GetZstd())) {
			return false
		}
	}
	return true
}

// impersonateAccounts sends changes of honest agents' accounts, in every term that these may have.
func (a *attacker) impersonateAccounts() {
	s := a.joinWithAccount("foreign", "lab")
	for s != nil {
		for _, account := range []string{"shop", "bank"} {
			for term := range int64(10) {
				for _, step := range forgedSteps {
					if !s.sendRecord(&wire.Record{Account: account, Term: term, Feed: pods(), Step: step}) {
						s = a.joinWithAccount("foreign", "lab")
						if s == nil {
							return
						}
					}
				}
			}
			s.send(&wire.AgentMessage{Message: &wire.AgentMessage_Deregister{Deregister: &wire.Deregister{Account: account}}})
			s.send(&wire.AgentMessage{Message: &wire.AgentMessage_AccountError{AccountError: &wire.AccountError{Account: account, Message: "forged error"}}})
			otherCluster := &wire.Register{Account: account, Cluster: &wire.Cluster{Uid: "another", Host: "https://other"}, Properties: []byte("{}")}
			s.send(&wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: otherCluster}})
		}
		if !a.pause(10 * time.Millisecond) {
			return
		}
	}
}

var forgedSteps = []wire.Step{
	&wire.Record_Upsert{Upsert: &wire.Upsert{Namespace: "default", Name: "forged", Uid: "f", ResourceVersion: "9999", ApiVersion: "v1", Live: true, Body: []byte("{}")}},
	&wire.Record_Delete{Delete: &wire.Delete{Namespace: "default", Name: "pod-0", ResourceVersion: "9999"}},
	&wire.Record_Begin{Begin: &wire.Begin{}},
	&wire.Record_End{End: &wire.End{ResourceVersion: "9999"}},
	&wire.Record_Status{Status: &wire.Status{State: "error", Message: "forged"}},
	&wire.Record_Declare{Declare: &wire.Declare{}},
}

// forgedID returns the ID of the operation that the honest agent gets during an attack.
func forgedID(n int) string { return fmt.Sprintf("01HZZZZZZZZZZZZZZZZZZZZZ%02d", n) }

// forgeAttack is the index of forgeOutcomes in attacks.
const forgeAttack = 1

// forgeOutcomes sends outcomes of another agent's operations.
func (a *attacker) forgeOutcomes() {
	s := a.joinWithAccount("honest-shop", "lab") // any agent may claim this ID
	if s == nil {
		return
	}
	c := wire.NewOperationsClient(s.conn)
	stream, err := c.Serve(a.ctx)
	if err != nil {
		return
	}
	_ = stream.Send(&wire.OperationsUp{Message: &wire.OperationsUp_Attach{Attach: &wire.Attach{Session: s.token}}})
	id := forgedID(forgeAttack)
	forged := wire.FromOutcome(vedette.Outcome{ID: vedette.OperationID(id), State: vedette.Done, Status: 200, Message: "forged",
		CacheObject: &vedette.Object{Key: vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "default", Name: "forged"}, UID: "f", ResourceVersion: "9999", Body: []byte("{}")}})
	encoded, _ := proto.Marshal(forged)
	for a.pause(time.Millisecond) {
		s.sendRecord(&wire.Record{Step: &wire.Record_Heartbeat{Heartbeat: &wire.AgentHeartbeat{UnixMillis: time.Now().UnixMilli()}}})
		_ = stream.Send(&wire.OperationsUp{Message: &wire.OperationsUp_Outcome{Outcome: forged}})
		for _, log := range []bool{false, true} {
			answers, err := c.Answer(a.ctx)
			if err != nil {
				return
			}
			w := wire.NewAnswerWriter(&wire.AnswerPiece{Session: s.token, Operation: id, Log: log}, answers.Send)
			_, _ = w.Write(encoded)
			_ = w.Close(nil)
			_, _ = answers.CloseAndRecv()
		}
	}
}

// newBomb returns a record of very many bytes, compressed to few, without its end.
var newBomb = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	enc, err := zstd.NewWriter(&b, zstd.WithWindowSize(wire.Window), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	_, _ = enc.Write(binary.AppendUvarint(nil, wire.MaxRecord))
	_, _ = enc.Write(make([]byte, wire.MaxRecord-10))
	_ = enc.Flush()
	return b.Bytes()
})

// sendBombs opens 300 streams on a few connections, each with data that grows a thousandfold when
// decompressed.
func (a *attacker) sendBombs(registered bool) {
	bomb := newBomb()
	a.runSessions(300, 60, func(i int, conn *grpc.ClientConn) {
		s := a.connectSession(conn, fmt.Sprint("bomb-", i))
		if s == nil {
			return
		}
		if registered {
			s.registerAccount(fmt.Sprint("bomb-", i))
		}
		for n := 0; n < len(bomb) && s.send(data(bomb[n:min(n+wire.MaxPiece, len(bomb))])); n += wire.MaxPiece {
		}
		a.pause(5 * time.Second) // while the server holds all of it
	})
}

// runSessions repeatedly runs n sessions, perConn on each connection.
func (a *attacker) runSessions(n, perConn int, session func(int, *grpc.ClientConn)) {
	var all sync.WaitGroup
	var conn *grpc.ClientConn
	for i := range n {
		if i%perConn == 0 {
			conn = a.connect()
		}
		c := conn
		all.Go(func() {
			for a.ctx.Err() == nil {
				session(i, c)
				a.pause(50 * time.Millisecond)
			}
		})
	}
	all.Wait()
}

// sendEndlessRecords sends records byte by byte that never end.
func (a *attacker) sendEndlessRecords() {
	a.runSessions(200, 50, func(i int, conn *grpc.ClientConn) {
		s := a.connectSession(conn, fmt.Sprint("endless-", i))
		if s == nil || s.registerAccount(fmt.Sprint("endless-", i)) == 0 {
			return
		}
		enc, _ := zstd.NewWriter(nil, zstd.WithWindowSize(wire.Window), zstd.WithEncoderConcurrency(1))
		defer enc.Close()
		var b bytes.Buffer
		enc.Reset(&b)
		_, _ = enc.Write(binary.AppendUvarint(nil, wire.MaxRecord))
		_, _ = enc.Write(make([]byte, 900<<10))
		for {
			_, _ = enc.Write([]byte{0})
			_ = enc.Flush()
			if !s.send(data(b.Bytes())) || !a.pause(500*time.Millisecond) {
				return
			}
			b.Reset()
		}
	})
}

// sendGiantCounts declares 100,000 feeds, and sends messages with millions of empty fields.
func (a *attacker) sendGiantCounts() {
	many := &wire.Declare{}
	for i := range 100_000 {
		many.Feeds = append(many.Feeds, &wire.DeclaredFeed{Feed: &wire.Feed{Kind: &wire.Kind{Group: fmt.Sprint("g", i%50), Name: fmt.Sprint("Kind", i)}}, Version: "v1", Plural: "x"})
	}
	declared, _ := proto.Marshal(&wire.Record{Account: "giant-0", Term: 1, Step: &wire.Record_Declare{Declare: many}})
	empty := protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), bytes.Repeat([]byte{0x0a, 0}, 8<<20))
	keys := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), bytes.Repeat([]byte{0x32, 0}, 500_000))
	a.runSessions(8, 2, func(i int, conn *grpc.ClientConn) {
		account := fmt.Sprint("giant-", i)
		s := a.connectSession(conn, account)
		if s == nil || s.registerAccount(account) == 0 {
			return
		}
		go s.discardMessages()
		header := wire.AppendHeader(nil, vedette.AccountName(account), 1, vedette.Feed{})
		for s.sendRaw(declared) && s.sendRaw(append(header[:len(header):len(header)], empty...)) && a.pause(100*time.Millisecond) {
			if stream, err := rawStream(a, conn, wire.Operations_Serve_FullMethodName); err == nil {
				_ = stream.SendMsg(keys)
			}
		}
	})
}

// rawCodec sends bytes unchanged.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (rawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }
func (rawCodec) Name() string                         { return "proto" }

func rawStream(a *attacker, conn *grpc.ClientConn, method string) (grpc.ClientStream, error) {
	return conn.NewStream(a.ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodecV2(rawCodec{}))
}

// openSilentConnections opens connections and streams, and sends nothing or half a message.
func (a *attacker) openSilentConnections() {
	for range 200 {
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(a.from)}}).DialContext(a.ctx, "tcp", a.server)
		if err != nil {
			break
		}
		defer c.Close()
		_, _ = c.Write([]byte("PRI * HTTP/2.0\r\n"))
	}
	a.runSessions(300, 100, func(i int, conn *grpc.ClientConn) {
		method := []string{wire.Caching_Connect_FullMethodName, wire.Operations_Serve_FullMethodName, wire.Operations_Answer_FullMethodName}[i%3]
		stream, err := rawStream(a, conn, method)
		if err != nil {
			return
		}
		if i%2 == 0 {
			_ = stream.SendMsg([]byte{0x0a}) // the tag of a hello without content
		}
		_ = stream.RecvMsg(nil)
	})
}

// openManyStreams sends hellos, and keeps thousands of sessions without an account open.
func (a *attacker) openManyStreams() {
	a.runSessions(2000, 200, func(i int, conn *grpc.ClientConn) {
		s := a.connectSession(conn, fmt.Sprint("many-", i))
		if s == nil {
			return
		}
		for s.sendRecord(&wire.Record{Step: &wire.Record_Heartbeat{Heartbeat: &wire.AgentHeartbeat{UnixMillis: time.Now().UnixMilli()}}}) && a.pause(2*time.Second) {
		}
	})
}

// sendInvalidUTF8 sends text that is not UTF-8 in every text field.
func (a *attacker) sendInvalidUTF8() {
	text := func(n protowire.Number) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), "\xff\x00\xe8")
	}
	all := func(upTo protowire.Number) (b []byte) {
		for n := protowire.Number(1); n <= upTo; n++ {
			b = append(b, text(n)...)
		}
		return b
	}
	a.runSessions(20, 20, func(i int, conn *grpc.ClientConn) {
		stream, err := rawStream(a, conn, wire.Caching_Connect_FullMethodName)
		if err != nil {
			return
		}
		hello, _ := proto.Marshal(&wire.AgentMessage{Message: &wire.AgentMessage_Hello{Hello: &wire.Hello{OldestProtocol: 1, NewestProtocol: 1, AgentId: "bytes"}}})
		_ = stream.SendMsg(hello)
		for n := protowire.Number(2); n <= 5; n++ {
			_ = stream.SendMsg(protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), all(5)))
		}
		_ = stream.SendMsg(protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), append(text(1), text(2)...)))
		a.pause(100 * time.Millisecond)
	})
}

// floodMessages sends account errors and registrations without pause.
func (a *attacker) floodMessages() {
	long := strings.Repeat("trouble ", 100<<10)
	a.runSessions(4, 2, func(i int, conn *grpc.ClientConn) {
		s := a.connectSession(conn, fmt.Sprint("flood-", i))
		if s == nil {
			return
		}
		go s.discardMessages()
		for n := 0; a.ctx.Err() == nil; n++ {
			account := fmt.Sprintf("flood-%d-%d", i, n)
			ok := s.send(&wire.AgentMessage{Message: &wire.AgentMessage_AccountError{AccountError: &wire.AccountError{Account: account, Message: long}}}) &&
				s.send(&wire.AgentMessage{Message: &wire.AgentMessage_Deregister{Deregister: &wire.Deregister{Account: account}}})
			if n%20 == 0 {
				ok = ok && s.send(&wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: &wire.Register{
					Account: account, Cluster: &wire.Cluster{Host: long}, Properties: []byte(long)}}})
			}
			if !ok {
				return
			}
		}
	})
}

// ignoreAnswers repeatedly begins a snapshot, and does not read the index that the server sends.
func (a *attacker) ignoreAnswers() {
	a.runSessions(10, 5, func(i int, conn *grpc.ClientConn) {
		account := fmt.Sprint("unread-", i)
		s := a.connectSession(conn, account)
		if s == nil {
			return
		}
		term := s.registerAccount(account)
		s.sendRecord(&wire.Record{Account: account, Term: term, Step: &wire.Record_Declare{Declare: &wire.Declare{Feeds: []*wire.DeclaredFeed{{Feed: pods(), Version: "v1", Plural: "pods"}}}}})
		for s.sendRecord(&wire.Record{Account: account, Term: term, Feed: pods(), Step: &wire.Record_Begin{Begin: &wire.Begin{}}}) && a.pause(time.Millisecond) {
		}
	})
}

// sendWrongTimes sends heartbeats with times in the past and future.
func (a *attacker) sendWrongTimes() {
	s := a.joinWithAccount("future", "tomorrow")
	for s != nil && a.pause(10*time.Millisecond) {
		for _, off := range []time.Duration{time.Hour, -time.Hour, 1 << 62, -1 << 62} {
			s.sendRecord(&wire.Record{Step: &wire.Record_Heartbeat{Heartbeat: &wire.AgentHeartbeat{UnixMillis: time.Now().Add(off).UnixMilli()}}})
		}
	}
}

// sendLargeObjects makes many agents write large objects of their own accounts, as fast as the
// server accepts them.
func (a *attacker) sendLargeObjects() {
	body := bytes.Repeat([]byte(`{"a":"0123456789"},`), 50_000)
	a.runSessions(50, 10, func(i int, conn *grpc.ClientConn) {
		account := fmt.Sprint("large-", i)
		s := a.connectSession(conn, account)
		if s == nil {
			return
		}
		term := s.registerAccount(account)
		go s.discardMessages()
		s.sendRecord(&wire.Record{Account: account, Term: term, Step: &wire.Record_Declare{Declare: &wire.Declare{Feeds: []*wire.DeclaredFeed{{Feed: pods(), Version: "v1", Plural: "pods", Namespaced: true}}}}})
		for n := 0; s.sendRecord(&wire.Record{Account: account, Term: term, Feed: pods(), Step: &wire.Record_Upsert{Upsert: &wire.Upsert{
			Namespace: "default", Name: fmt.Sprint("big-", n%20), Uid: "u", ResourceVersion: fmt.Sprint(n), ApiVersion: "v1", Live: true, Body: fmt.Appendf(nil, "[%s%d]", body, n)}}}); n++ {
		}
	})
}

// sendSlowly sends large objects of its own account, and rarely reads a response.
func (a *attacker) sendSlowly() {
	s := a.connectSession(a.connect(), "slow")
	if s == nil {
		return
	}
	term := s.registerAccount("slow")
	s.sendRecord(&wire.Record{Account: "slow", Term: term, Step: &wire.Record_Declare{Declare: &wire.Declare{Feeds: []*wire.DeclaredFeed{{Feed: pods(), Version: "v1", Plural: "pods", Namespaced: true}}}}})
	body := bytes.Repeat([]byte(`{"a":"0123456789"},`), 50_000)
	for i := 0; a.pause(20 * time.Millisecond); i++ {
		s.sendRecord(&wire.Record{Account: "slow", Term: term, Feed: pods(), Step: &wire.Record_Upsert{Upsert: &wire.Upsert{
			Namespace: "default", Name: fmt.Sprint("big-", i%50), Uid: "u", ResourceVersion: fmt.Sprint(i), ApiVersion: "v1", Live: true, Body: fmt.Appendf(nil, "[%s%d]", body, i)}}})
	}
}
