package hostile

import (
	"context"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/vedette-io/vedette/wire"
)

// agentAttacks are attacks of hostile agents, each on a host of its own, which have accounts for the hostile callers.
var agentAttacks = map[string]func(w *hostileWorld, a *attacker, hit func()){
	"silent agents":                  (*hostileWorld).receiveSilently,
	"endless answers":                (*hostileWorld).answerEndlessly,
	"applications of agents":         (*hostileWorld).reportApplications,
	"feeds that begin anew":          (*hostileWorld).beginAnew,
	"verifications that never agree": (*hostileWorld).verifyWrongly,
	"large messages and headers":     (*hostileWorld).sendLargeMessages,
	"health and reflection":          (*hostileWorld).askHealth,
}

// session connects with an account, again and again, and does something with it until it fails.
func (w *hostileWorld) session(a *attacker, account string, do func(s *attackSession, term int64)) {
	for w.ctx.Err() == nil {
		if s := a.connectSession(a.connect(), "agent-of-"+account); s != nil {
			if term := s.registerAccount(account); term != 0 {
				go s.discardMessages()
				do(s, term)
			}
			_ = s.conn.Close()
		}
		pause(w.ctx, 100*time.Millisecond)
	}
}

// beat sends heartbeats until it fails.
func (s *attackSession) beat() {
	for s.sendRecord(&wire.Record{Step: &wire.Record_Heartbeat{Heartbeat: &wire.AgentHeartbeat{UnixMillis: time.Now().UnixMilli()}}}) && s.pause(time.Second) {
	}
}

// serve attaches to the operations of a session and calls do for each.
func (s *attackSession) serve(do func(c wire.OperationsClient, op *wire.Operation)) {
	c := wire.NewOperationsClient(s.conn)
	stream, err := c.Serve(s.ctx)
	if err != nil {
		return
	}
	_ = stream.Send(&wire.OperationsUp{Message: &wire.OperationsUp_Attach{Attach: &wire.Attach{Session: s.token, Process: "p"}}})
	for {
		m, err := stream.Recv()
		if err != nil {
			return
		}
		if op := m.GetOperation(); op != nil {
			go do(c, op)
		}
	}
}

// receiveSilently receives operations and answers none.
func (w *hostileWorld) receiveSilently(a *attacker, hit func()) {
	for _, account := range []string{"mute", "mute-2"} {
		go w.session(a, account, func(s *attackSession, _ int64) {
			go s.serve(func(wire.OperationsClient, *wire.Operation) {})
			hit()
			s.beat()
		})
	}
}

// answerEndlessly answers operations with answers that do not end.
func (w *hostileWorld) answerEndlessly(a *attacker, hit func()) {
	w.session(a, "bloat", func(s *attackSession, _ int64) {
		go s.serve(func(c wire.OperationsClient, op *wire.Operation) {
			answers, err := c.Answer(s.ctx)
			if err != nil {
				return
			}
			hit()
			out := wire.NewAnswerWriter(&wire.AnswerPiece{Session: s.token, Operation: op.GetId()}, answers.Send)
			object := []byte(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)
			for n := 0; n < 1000 && wire.WriteOutcomeObject(out, object) == nil && out.Flush() == nil; n++ {
			}
		})
		s.beat()
	})
}

// reportApplications reports objects of very many applications, and very many of one.
func (w *hostileWorld) reportApplications(a *attacker, hit func()) {
	deployments := &wire.Feed{Kind: &wire.Kind{Group: "apps", Name: "Deployment"}}
	w.session(a, "applications", func(s *attackSession, term int64) {
		go s.beat()
		s.sendRecord(&wire.Record{Account: "applications", Term: term, Step: &wire.Record_Declare{Declare: &wire.Declare{Feeds: []*wire.DeclaredFeed{
			{Feed: deployments, Version: "v1", Plural: "deployments", Namespaced: true}}}}})
		for n := 0; ; n++ {
			application := "huge"
			if n%2 == 0 {
				application = fmt.Sprint("app", n%6000/2)
			}
			name := fmt.Sprint(application, "-", n%20_000)
			if !s.sendRecord(&wire.Record{Account: "applications", Term: term, Feed: deployments, Step: &wire.Record_Upsert{Upsert: &wire.Upsert{Namespace: "n", Name: name,
				Uid: name, ResourceVersion: fmt.Sprint(n), ApiVersion: "apps/v1", Live: true, Annotations: map[string]string{"moniker.spinnaker.io/application": application, "moniker.spinnaker.io/cluster": name},
				Labels: map[string]string{"a": strings.Repeat("l", 60)},
				Body:   fmt.Appendf(nil, `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":%q,"namespace":"n"},"spec":{"replicas":3}}`, name)}}}) {
				return
			}
			hit()
			if n%100 == 0 && !s.pause(10*time.Millisecond) {
				return
			}
		}
	})
}

// beginAnew begins a feed anew without end, between objects, and marks what is not there.
func (w *hostileWorld) beginAnew(a *attacker, hit func()) {
	w.session(a, "anew", func(s *attackSession, term int64) {
		go s.beat()
		send := func(step wire.Step) bool {
			return s.sendRecord(&wire.Record{Account: "anew", Term: term, Feed: pods(), Step: step})
		}
		s.sendRecord(&wire.Record{Account: "anew", Term: term, Step: &wire.Record_Declare{Declare: &wire.Declare{Feeds: []*wire.DeclaredFeed{{Feed: pods(), Version: "v1", Plural: "pods", Namespaced: true}}}}})
		for n := 0; send(&wire.Record_Begin{Begin: &wire.Begin{Anew: true, NamedDigests: n%2 == 0}}); n++ {
			hit()
			name := fmt.Sprint("p", n%5000)
			if !send(&wire.Record_Upsert{Upsert: &wire.Upsert{Namespace: "n", Name: name, Uid: name, ResourceVersion: "7", ApiVersion: "v1", Body: fmt.Appendf(nil, `{"n":%d}`, n)}}) ||
				!send(&wire.Record_Drop{Drop: &wire.Drop{Digests: make([]uint64, 1000)}}) || n%3 == 0 && !send(&wire.Record_End{End: &wire.End{ResourceVersion: fmt.Sprint(n % 10)}}) {
				return
			}
		}
	})
}

// verifyWrongly asks for verification with sums that never agree, and claims drift.
func (w *hostileWorld) verifyWrongly(a *attacker, hit func()) {
	w.session(a, "verify", func(s *attackSession, term int64) {
		go s.beat()
		hit()
		send := func(step wire.Step) bool {
			return s.sendRecord(&wire.Record{Account: "verify", Term: term, Feed: pods(), Step: step})
		}
		s.sendRecord(&wire.Record{Account: "verify", Term: term, Step: &wire.Record_Declare{Declare: &wire.Declare{Feeds: []*wire.DeclaredFeed{{Feed: pods(), Version: "v1", Plural: "pods", Namespaced: true}}}}})
		send(&wire.Record_Begin{Begin: &wire.Begin{}})
		for i := range 500 {
			name := fmt.Sprint("p", i)
			send(&wire.Record_Upsert{Upsert: &wire.Upsert{Namespace: "n", Name: name, Uid: name, ResourceVersion: "7", ApiVersion: "v1", Body: []byte(`{}`)}})
		}
		send(&wire.Record_End{End: &wire.End{ResourceVersion: "7"}})
		wrong, buckets := make([]uint64, 4096), make([]uint32, 4096)
		for i := range wrong {
			wrong[i], buckets[i] = math.MaxUint64-uint64(i), uint32(i)
		}
		for n := uint64(0); send(&wire.Record_Verify{Verify: &wire.Verify{Id: n, Bits: 12, Sums: wrong}}); n++ {
			hit()
			if !send(&wire.Record_Verify{Verify: &wire.Verify{Id: n, Bits: 12, Buckets: buckets, Named: wrong}}) || !send(&wire.Record_Verify{Verify: &wire.Verify{Id: n, Bits: 77}}) ||
				!send(&wire.Record_Verified{Verified: &wire.Verified{Missing: math.MaxUint64, Examples: []string{strings.Repeat("\x1b[2J", 10_000)}, Restored: true}}) || !s.pause(time.Millisecond) {
				return
			}
		}
	})
}

// sendLargeMessages sends headers and messages that are larger than allowed, on many streams.
func (w *hostileWorld) sendLargeMessages(a *attacker, hit func()) {
	large := make([]byte, 1<<20)
	a.runSessions(100, 50, func(i int, conn *grpc.ClientConn) {
		method := []string{wire.Caching_Connect_FullMethodName, wire.Operations_Serve_FullMethodName, wire.Operations_Answer_FullMethodName}[i%3]
		ctx := metadata.AppendToOutgoingContext(a.ctx, "authorization", strings.Repeat("x", []int{1, 15 << 10, 1 << 20}[i%3]))
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodecV2(rawCodec{}))
		if err != nil {
			return
		}
		hit()
		for stream.SendMsg(large) == nil && a.pause(10*time.Millisecond) {
		}
	})
}

// askHealth calls the health service and reflection with large messages.
func (w *hostileWorld) askHealth(a *attacker, hit func()) {
	large := make([]byte, 900<<10)
	a.runSessions(40, 20, func(i int, conn *grpc.ClientConn) {
		method := []string{"/grpc.health.v1.Health/Watch", "/grpc.health.v1.Health/Check", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"}[i%3]
		stream, err := rawStream(a, conn, method)
		if err != nil {
			return
		}
		hit()
		for stream.SendMsg(large) == nil && a.pause(10*time.Millisecond) {
		}
	})
}

// hostileServer is a server for one agent: it assigns each account, answers each snapshot with an index that does
// not end, sends operations and acknowledges nothing.
type hostileServer struct {
	wire.UnimplementedCachingServer
	wire.UnimplementedOperationsServer
	*hostileWorld
}

func (w *hostileWorld) startHostileServer() (address string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(wire.Codec()))
	h := hostileServer{hostileWorld: w}
	wire.RegisterCachingServer(server, h)
	wire.RegisterOperationsServer(server, h)
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), nil
}

// Connect is called by gRPC.
func (h hostileServer) Connect(stream grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	welcome := &wire.Welcome{Protocol: 1, ServerId: "hostile", HeartbeatSeconds: 3, CreditBytes: math.MaxUint32, Session: "s"}
	if err := stream.Send(&wire.ServerMessage{Message: &wire.ServerMessage_Welcome{Welcome: welcome}}); err != nil {
		return err
	}
	for isAssigned := false; ; {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		r := m.GetRegister()
		if r == nil || isAssigned {
			continue
		}
		isAssigned = true // from here on, flood sends
		if err := stream.Send(&wire.ServerMessage{Message: &wire.ServerMessage_Assignment{Assignment: &wire.Assignment{Account: r.GetAccount(), Role: wire.Assignment_ROLE_CACHER, Term: 1}}}); err != nil {
			return err
		}
		go h.flood(stream, r.GetAccount())
	}
}

// flood sends indexes and heartbeats whose stamps jump.
func (h hostileServer) flood(stream grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage], account string) {
	feed := &wire.Feed{Kind: &wire.Kind{Name: "ConfigMap"}}
	for n := int64(0); ; n++ {
		h.hit("endless indexes")
		stamp := []int64{0, math.MaxInt64, -1, math.MinInt64}[n%4]
		if stream.Send(&wire.ServerMessage{Message: &wire.ServerMessage_Index{Index: &wire.Index{Account: account, Feed: feed, Digests: make([]uint64, 100_000)}}}) != nil ||
			stream.Send(&wire.ServerMessage{Message: &wire.ServerMessage_VerifyAnswer{VerifyAnswer: &wire.VerifyAnswer{Account: account, Feed: feed, Id: uint64(n), Digests: make([]uint64, 100_000)}}}) != nil ||
			stream.Send(&wire.ServerMessage{Message: &wire.ServerMessage_Heartbeat{Heartbeat: &wire.Heartbeat{Stamp: stamp, AgentMillis: stamp, AgentRead: stamp, AliveMillis: 1}}}) != nil {
			return
		}
		pause(stream.Context(), 20*time.Millisecond)
	}
}

// Serve is called by gRPC. It sends operations that read much, and writes of very many values, under new IDs.
func (h hostileServer) Serve(stream grpc.BidiStreamingServer[wire.OperationsUp, wire.OperationsDown]) error {
	go func() {
		for {
			if _, err := stream.Recv(); err != nil {
				return
			}
		}
	}()
	target := &wire.Target{Kind: "ConfigMap", Namespace: "n"}
	manifest := []byte(strings.TrimSuffix(configMap("x", 5, `,"a":[`+strings.Repeat(`{"":0},`, 100_000)+`0]`), ""))
	for n := 0; stream.Context().Err() == nil; n++ {
		h.hit("a server that acknowledges nothing")
		op := &wire.Operation{Id: fmt.Sprintf("01J%023d", n), Account: "deceived", TimeoutMillis: math.MaxInt64, Verb: &wire.Operation_List{List: &wire.List{Target: target}}}
		if n%2 == 0 {
			op.Verb = &wire.Operation_Get{Get: &wire.Target{Kind: "ConfigMap", Namespace: "n", Name: "x"}}
		}
		if n%5 == 0 {
			op.Verb = &wire.Operation_Apply{Apply: &wire.Apply{Manifest: manifest}}
		}
		if err := stream.Send(&wire.OperationsDown{Message: &wire.OperationsDown_Operation{Operation: op}}); err != nil {
			return err
		}
		pause(stream.Context(), 5*time.Millisecond)
	}
	return context.Cause(stream.Context())
}

// Answer is called by gRPC. It reads slowly, and ends nothing.
func (h hostileServer) Answer(stream grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error {
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		pause(stream.Context(), 100*time.Millisecond)
	}
}
