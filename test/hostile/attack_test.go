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

// spy is one session of a hostile agent.
type spy struct {
	*enemy
	conn   *grpc.ClientConn
	stream grpc.BidiStreamingClient[wire.AgentMessage, wire.ServerMessage]
	token  string
	writer wire.Writer
}

// join greets the server; nil where it does not let the spy in.
func (e *enemy) join(conn *grpc.ClientConn, id string) *spy {
	p := &spy{enemy: e, conn: conn}
	var err error
	if p.stream, err = wire.NewCachingClient(conn).Connect(e.ctx); err != nil {
		return nil
	}
	p.send(&wire.AgentMessage{Message: &wire.AgentMessage_Hello{Hello: &wire.Hello{OldestProtocol: 1, NewestProtocol: 1, AgentId: id}}})
	m, err := p.stream.Recv()
	if err != nil {
		return nil
	}
	p.token = m.GetWelcome().GetSession()
	return p
}

// own registers an account that is the spy's to report, and returns its term.
func (p *spy) own(account string) int64 {
	p.send(registration(account))
	for {
		m, err := p.stream.Recv()
		if err != nil {
			return 0
		}
		if a := m.GetAssignment(); a != nil {
			return a.GetTerm()
		}
	}
}

// settle joins on a connection of its own, with an account of its own.
func (e *enemy) settle(id, account string) *spy {
	p := e.join(e.connect(), id)
	if p != nil {
		p.own(account)
		go p.drain()
	}
	return p
}

// drain reads what the server says, so that it may say more.
func (p *spy) drain() {
	for {
		if _, err := p.stream.Recv(); err != nil {
			return
		}
	}
}

func (p *spy) send(m *wire.AgentMessage) bool { return p.stream.Send(m) == nil }

// tell sends a record, or what the spy says is one.
func (p *spy) tell(rec *wire.Record) bool {
	b, err := wire.Marshal(rec)
	if err != nil {
		return false
	}
	return p.raw(b)
}

func (p *spy) raw(record []byte) bool {
	_ = p.writer.Write(record) // into memory
	pieces, _ := p.writer.Flush()
	for _, d := range pieces {
		if !p.send(data(d.GetZstd())) {
			return false
		}
	}
	return true
}

// foreign speaks for accounts that honest agents hold, in every term that they may have.
func (e *enemy) foreign() {
	p := e.settle("foreign", "lab")
	for p != nil {
		for _, account := range []string{"shop", "bank"} {
			for term := range int64(10) {
				for _, step := range lies {
					if !p.tell(&wire.Record{Account: account, Term: term, Feed: pods(), Step: step}) {
						if p = e.settle("foreign", "lab"); p == nil {
							return
						}
					}
				}
			}
			p.send(&wire.AgentMessage{Message: &wire.AgentMessage_Deregister{Deregister: &wire.Deregister{Account: account}}})
			p.send(&wire.AgentMessage{Message: &wire.AgentMessage_Trouble{Trouble: &wire.Trouble{Account: account, Message: "it burns"}}})
			stranger := &wire.Register{Account: account, Cluster: &wire.Cluster{Uid: "another", Host: "https://other"}, Properties: []byte("{}")}
			p.send(&wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: stranger}})
		}
		if !e.rest(10 * time.Millisecond) {
			return
		}
	}
}

var lies = []wire.Step{
	&wire.Record_Upsert{Upsert: &wire.Upsert{Namespace: "default", Name: "forged", Uid: "f", ResourceVersion: "9999", ApiVersion: "v1", Live: true, Body: []byte("{}")}},
	&wire.Record_Delete{Delete: &wire.Delete{Namespace: "default", Name: "pod-0", ResourceVersion: "9999"}},
	&wire.Record_Begin{Begin: &wire.Begin{}},
	&wire.Record_End{End: &wire.End{ResourceVersion: "9999"}},
	&wire.Record_Status{Status: &wire.Status{State: "error", Message: "forged"}},
	&wire.Record_Declare{Declare: &wire.Declare{}},
}

// forgedID is the id of the operation that the honest agent is asked in an attack.
func forgedID(n int) string { return fmt.Sprintf("01HZZZZZZZZZZZZZZZZZZZZZ%02d", n) }

// theForged is the attack of forge among attacks.
const theForged = 1

// forge answers what another agent is asked.
func (e *enemy) forge() {
	p := e.settle("honest-shop", "lab") // anybody may say so
	if p == nil {
		return
	}
	c := wire.NewOperationsClient(p.conn)
	stream, err := c.Serve(e.ctx)
	if err != nil {
		return
	}
	_ = stream.Send(&wire.OperationsUp{Message: &wire.OperationsUp_Attach{Attach: &wire.Attach{Session: p.token}}})
	id := forgedID(theForged)
	forged := wire.FromOutcome(vedette.Outcome{ID: vedette.OperationID(id), State: vedette.Done, Status: 200, Message: "forged",
		CacheObject: &vedette.Object{Key: vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "default", Name: "forged"}, UID: "f", ResourceVersion: "9999", Body: []byte("{}")}})
	encoded, _ := proto.Marshal(forged)
	for e.rest(time.Millisecond) {
		p.tell(&wire.Record{Step: &wire.Record_Pulse{Pulse: &wire.AgentPulse{UnixMillis: time.Now().UnixMilli()}}})
		_ = stream.Send(&wire.OperationsUp{Message: &wire.OperationsUp_Outcome{Outcome: forged}})
		for _, log := range []bool{false, true} {
			apart, err := c.Answer(e.ctx)
			if err != nil {
				return
			}
			w := wire.NewAnswerWriter(&wire.AnswerPiece{Session: p.token, Operation: id, Log: log}, apart.Send)
			_, _ = w.Write(encoded)
			_ = w.Close(nil)
			_, _ = apart.CloseAndRecv()
		}
	}
}

// bombOf is a record of many bytes, compressed to few, without its end.
var bombOf = sync.OnceValue(func() []byte {
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

// bomb has 300 streams of few connections that grow a thousandfold.
func (e *enemy) bomb(registered bool) {
	bomb := bombOf()
	e.each(300, 60, func(i int, conn *grpc.ClientConn) {
		p := e.join(conn, fmt.Sprint("bomb-", i))
		if p == nil {
			return
		}
		if registered {
			p.own(fmt.Sprint("bomb-", i))
		}
		for n := 0; n < len(bomb) && p.send(data(bomb[n:min(n+wire.MaxPiece, len(bomb))])); n += wire.MaxPiece {
		}
		e.rest(5 * time.Second) // with all of it in the server's hands
	})
}

// each runs n sessions, so many to a connection, again and again.
func (e *enemy) each(n, perConn int, session func(int, *grpc.ClientConn)) {
	var all sync.WaitGroup
	var conn *grpc.ClientConn
	for i := range n {
		if i%perConn == 0 {
			conn = e.connect()
		}
		c := conn
		all.Go(func() {
			for e.ctx.Err() == nil {
				session(i, c)
				e.rest(50 * time.Millisecond)
			}
		})
	}
	all.Wait()
}

// neverEnd sends records byte by byte, whose end does not come.
func (e *enemy) neverEnd() {
	e.each(200, 50, func(i int, conn *grpc.ClientConn) {
		p := e.join(conn, fmt.Sprint("endless-", i))
		if p == nil || p.own(fmt.Sprint("endless-", i)) == 0 {
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
			if !p.send(data(b.Bytes())) || !e.rest(500*time.Millisecond) {
				return
			}
			b.Reset()
		}
	})
}

// giantCounts declares 100,000 feeds, and sends messages of millions of empty fields.
func (e *enemy) giantCounts() {
	many := &wire.Declare{}
	for i := range 100_000 {
		many.Feeds = append(many.Feeds, &wire.DeclaredFeed{Feed: &wire.Feed{Kind: &wire.Kind{Group: fmt.Sprint("g", i%50), Name: fmt.Sprint("Kind", i)}}, Version: "v1", Plural: "x"})
	}
	declared, _ := proto.Marshal(&wire.Record{Account: "giant-0", Term: 1, Step: &wire.Record_Declare{Declare: many}})
	empty := protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), bytes.Repeat([]byte{0x0a, 0}, 8<<20))
	keys := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), bytes.Repeat([]byte{0x32, 0}, 500_000))
	e.each(8, 2, func(i int, conn *grpc.ClientConn) {
		account := fmt.Sprint("giant-", i)
		p := e.join(conn, account)
		if p == nil || p.own(account) == 0 {
			return
		}
		go p.drain()
		header := wire.AppendHeader(nil, vedette.AccountName(account), 1, vedette.Feed{})
		for p.raw(declared) && p.raw(append(header[:len(header):len(header)], empty...)) && e.rest(100*time.Millisecond) {
			if up, err := rawStream(e, conn, wire.Operations_Serve_FullMethodName); err == nil {
				_ = up.SendMsg(keys)
			}
		}
	})
}

// raw sends bytes as they are.
type raw struct{}

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }
func (raw) Name() string                         { return "proto" }

func rawStream(e *enemy, conn *grpc.ClientConn, method string) (grpc.ClientStream, error) {
	return conn.NewStream(e.ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodecV2(raw{}))
}

// silence opens connections and streams, and says nothing, or half a word.
func (e *enemy) silence() {
	for range 200 {
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}).DialContext(e.ctx, "tcp", e.server)
		if err != nil {
			break
		}
		defer c.Close()
		_, _ = c.Write([]byte("PRI * HTTP/2.0\r\n"))
	}
	e.each(300, 100, func(i int, conn *grpc.ClientConn) {
		method := []string{wire.Caching_Connect_FullMethodName, wire.Operations_Serve_FullMethodName, wire.Operations_Answer_FullMethodName}[i%3]
		stream, err := rawStream(e, conn, method)
		if err != nil {
			return
		}
		if i%2 == 0 {
			_ = stream.SendMsg([]byte{0x0a}) // the tag of a hello, and nothing after it
		}
		_ = stream.RecvMsg(nil)
	})
}

// manyStreams greets, and keeps thousands of sessions without an account.
func (e *enemy) manyStreams() {
	e.each(2000, 200, func(i int, conn *grpc.ClientConn) {
		p := e.join(conn, fmt.Sprint("many-", i))
		if p == nil {
			return
		}
		for p.tell(&wire.Record{Step: &wire.Record_Pulse{Pulse: &wire.AgentPulse{UnixMillis: time.Now().UnixMilli()}}}) && e.rest(2*time.Second) {
		}
	})
}

// bytes sends what is not UTF-8 wherever a text may stand.
func (e *enemy) bytes() {
	text := func(n protowire.Number) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), "\xff\x00\xe8")
	}
	all := func(upTo protowire.Number) (b []byte) {
		for n := protowire.Number(1); n <= upTo; n++ {
			b = append(b, text(n)...)
		}
		return b
	}
	e.each(20, 20, func(i int, conn *grpc.ClientConn) {
		stream, err := rawStream(e, conn, wire.Caching_Connect_FullMethodName)
		if err != nil {
			return
		}
		hello, _ := proto.Marshal(&wire.AgentMessage{Message: &wire.AgentMessage_Hello{Hello: &wire.Hello{OldestProtocol: 1, NewestProtocol: 1, AgentId: "bytes"}}})
		_ = stream.SendMsg(hello)
		for n := protowire.Number(2); n <= 5; n++ {
			_ = stream.SendMsg(protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), all(5)))
		}
		_ = stream.SendMsg(protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), append(text(1), text(2)...)))
		e.rest(100 * time.Millisecond)
	})
}

// flood tells of troubles and registers accounts, ever more.
func (e *enemy) flood() {
	long := strings.Repeat("trouble ", 100<<10)
	e.each(4, 2, func(i int, conn *grpc.ClientConn) {
		p := e.join(conn, fmt.Sprint("flood-", i))
		if p == nil {
			return
		}
		go p.drain()
		for n := 0; e.ctx.Err() == nil; n++ {
			account := fmt.Sprintf("flood-%d-%d", i, n)
			ok := p.send(&wire.AgentMessage{Message: &wire.AgentMessage_Trouble{Trouble: &wire.Trouble{Account: account, Message: long}}}) &&
				p.send(&wire.AgentMessage{Message: &wire.AgentMessage_Deregister{Deregister: &wire.Deregister{Account: account}}})
			if n%20 == 0 {
				ok = ok && p.send(&wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: &wire.Register{
					Account: account, Cluster: &wire.Cluster{Host: long}, Properties: []byte(long)}}})
			}
			if !ok {
				return
			}
		}
	})
}

// unread begins a feed again and again, and reads nothing of what it is answered.
func (e *enemy) unread() {
	e.each(10, 5, func(i int, conn *grpc.ClientConn) {
		account := fmt.Sprint("unread-", i)
		p := e.join(conn, account)
		if p == nil {
			return
		}
		term := p.own(account)
		p.tell(&wire.Record{Account: account, Term: term, Step: &wire.Record_Declare{Declare: &wire.Declare{Feeds: []*wire.DeclaredFeed{{Feed: pods(), Version: "v1", Plural: "pods"}}}}})
		for p.tell(&wire.Record{Account: account, Term: term, Feed: pods(), Step: &wire.Record_Begin{Begin: &wire.Begin{}}}) && e.rest(time.Millisecond) {
		}
	})
}

// future sends pulses from another time.
func (e *enemy) future() {
	p := e.settle("future", "tomorrow")
	for p != nil && e.rest(10*time.Millisecond) {
		for _, off := range []time.Duration{time.Hour, -time.Hour, 1 << 62, -1 << 62} {
			p.tell(&wire.Record{Step: &wire.Record_Pulse{Pulse: &wire.AgentPulse{UnixMillis: time.Now().Add(off).UnixMilli()}}})
		}
	}
}

// large has many agents write large objects of their own, as fast as they are taken.
func (e *enemy) large() {
	body := bytes.Repeat([]byte(`{"a":"0123456789"},`), 50_000)
	e.each(50, 10, func(i int, conn *grpc.ClientConn) {
		account := fmt.Sprint("large-", i)
		p := e.join(conn, account)
		if p == nil {
			return
		}
		term := p.own(account)
		go p.drain()
		p.tell(&wire.Record{Account: account, Term: term, Step: &wire.Record_Declare{Declare: &wire.Declare{Feeds: []*wire.DeclaredFeed{{Feed: pods(), Version: "v1", Plural: "pods", Namespaced: true}}}}})
		for n := 0; p.tell(&wire.Record{Account: account, Term: term, Feed: pods(), Step: &wire.Record_Upsert{Upsert: &wire.Upsert{
			Namespace: "default", Name: fmt.Sprint("big-", n%20), Uid: "u", ResourceVersion: fmt.Sprint(n), ApiVersion: "v1", Live: true, Body: fmt.Appendf(nil, "[%s%d]", body, n)}}}); n++ {
		}
	})
}

// slow sends large objects of an account of its own, and reads an answer now and then.
func (e *enemy) slow() {
	p := e.join(e.connect(), "slow")
	if p == nil {
		return
	}
	term := p.own("slow")
	p.tell(&wire.Record{Account: "slow", Term: term, Step: &wire.Record_Declare{Declare: &wire.Declare{Feeds: []*wire.DeclaredFeed{{Feed: pods(), Version: "v1", Plural: "pods", Namespaced: true}}}}})
	body := bytes.Repeat([]byte(`{"a":"0123456789"},`), 50_000)
	for i := 0; e.rest(20 * time.Millisecond); i++ {
		p.tell(&wire.Record{Account: "slow", Term: term, Feed: pods(), Step: &wire.Record_Upsert{Upsert: &wire.Upsert{
			Namespace: "default", Name: fmt.Sprint("big-", i%50), Uid: "u", ResourceVersion: fmt.Sprint(i), ApiVersion: "v1", Live: true, Body: fmt.Appendf(nil, "[%s%d]", body, i)}}})
	}
}
