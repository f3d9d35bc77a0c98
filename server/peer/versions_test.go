package peer

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/coherence"
	"github.com/vedette-io/vedette/server/peer/peerproto"
	"github.com/vedette-io/vedette/wire"
)

// newer returns a message as a later version sends it: with fields that this one does not know, in it and in all messages below it.
func newer[M proto.Message](m M) M {
	addUnknown(m.ProtoReflect())
	return m
}

func addUnknown(m protoreflect.Message) {
	m.SetUnknown(unknownFields)
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range v.List().Len() {
				addUnknown(v.List().Get(i).Message())
			}
		default:
			addUnknown(v.Message())
		}
		return true
	})
}

// unknownFields are one of each kind.
var unknownFields = func() (b []byte) {
	b = protowire.AppendVarint(protowire.AppendTag(b, 1000, protowire.VarintType), 7)
	b = protowire.AppendBytes(protowire.AppendTag(b, 1001, protowire.BytesType), []byte("later"))
	b = protowire.AppendFixed64(protowire.AppendTag(b, 1002, protowire.Fixed64Type), 7)
	return protowire.AppendFixed32(protowire.AppendTag(b, 1003, protowire.Fixed32Type), 7)
}()

// TestNewerServerCalls lets a later version send operations to an agent of this one.
func TestNewerServerCalls(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	a := w.newAgent("a", "1", "prod")
	a.connect(w.nodes["s2"])
	encode := func(id vedette.OperationID) *peerproto.RelayUp {
		now := time.Now()
		encoded, err := wire.FromOperation(vedette.Operation{ID: id, Account: "prod", Args: restart, Deadline: now.Add(time.Minute)}, now)
		if err != nil {
			t.Fatal(err)
		}
		return newer(down(&wire.OperationsDown{Message: &wire.OperationsDown_Operation{Operation: encoded}}))
	}
	open := func(id string) rawCall {
		c := w.call(t, "s1", "s2", newer(&peerproto.Open{Operation: id, Account: "prod"}))
		if offered := c.receive().GetAgent(); offered.GetId() != "a" {
			t.Fatalf("got %v, want the agent", offered)
		}
		return c
	}
	c := open("known")
	c.send(encode("known"))
	if p := c.receive().GetPiece(); !p.GetLast() {
		t.Errorf("got %v, want the outcome", p)
	}
	c.send(newer(down(&wire.OperationsDown{Message: &wire.OperationsDown_Forget{Forget: &wire.Forget{Id: "known"}}})))
	await(t, "the agent may forget the outcome", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.outcomes) == 0 })
	if n := a.effects("known"); n != 1 {
		t.Errorf("the operation took effect %d times", n)
	}

	// What this version does not know is ignored, and the operation takes effect once.
	c = open("unknown")
	c.send(newer(&peerproto.RelayUp{}))
	c.send(encode("unknown"))
	c.send(newer(&peerproto.RelayUp{}))
	if p := c.receive().GetPiece(); !p.GetLast() {
		t.Errorf("after messages that this version does not know: got %v, want the outcome", p)
	}
	if n := a.effects("unknown"); n != 1 {
		t.Errorf("the operation took effect %d times", n)
	}
}

// TestNewerServerRelays lets a later version pass operations of this one to its agent.
func TestNewerServerRelays(t *testing.T) {
	outcome := newer(wire.FromOutcome(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, Message: "own"}))
	encoded, err := wire.Marshal(outcome)
	if err != nil {
		t.Fatal(err)
	}
	whole := newer(pieceOf(&peerproto.Piece{Content: encoded, Size: uint64(len(encoded)), Last: true}))
	unsent := newer(&peerproto.RelayDown{Message: &peerproto.RelayDown_Unsent{Unsent: &peerproto.Unsent{Reason: 99, Message: "for a later reason"}}})
	for _, tt := range []struct {
		name    string
		after   *peerproto.RelayDown
		want    vedette.OutcomeState
		message string
	}{
		{"an outcome", whole, vedette.Done, "own"},
		{"a reason for which it was not sent", unsent, vedette.Failed, "nothing was done"},
		{"an end that this version does not know", newer(&peerproto.RelayDown{}), vedette.Lost, "unknown whether"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newInstallation(t, "s1")
			w.startLiar(&liar{offer: newer(&peerproto.Agent{Id: "a", Process: "1", Cluster: &wire.Cluster{Uid: "uid of prod"}}), after: []*peerproto.RelayDown{tt.after}})
			op := vedette.Operation{ID: "op", Account: "prod", Args: restart, Cluster: clusterOf("prod"), Deadline: time.Now().Add(500 * time.Millisecond)}
			if out := w.nodes["s1"].Execute(t.Context(), op); out.State != tt.want || !strings.Contains(out.Message, tt.message) {
				t.Errorf("got %+v, want %s: %s", out, tt.want, tt.message)
			}
		})
	}
}

// TestUnknownCallsAreRefused calls what only a later version has. The connection serves other calls.
func TestUnknownCallsAreRefused(t *testing.T) {
	w := newInstallation(t, "s1", "s2")
	w.newAgent("a", "1", "prod").connect(w.nodes["s2"])
	p, _ := w.nodes["s1"].Peer("s2")
	conn, err := w.nodes["s1"].client.conn(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"/vedette.peer.v1.Peers/Later", "/vedette.peer.v2.Peers/Relay"} {
		err := conn.Invoke(t.Context(), method, &peerproto.AwaitEndRequest{}, &peerproto.AwaitEndResponse{})
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: got %v, want status Unimplemented", method, err)
		}
	}
	expectDone(t, w.nodes["s1"].Execute(t.Context(), vedette.Operation{ID: "op", Account: "prod", Args: restart}))
}

// newerPublisher is a later version, which says what it has changed in its own way.
type newerPublisher struct {
	peerproto.UnimplementedCoherenceServer
	says []*peerproto.FollowDown
}

func (p newerPublisher) Follow(stream grpc.BidiStreamingServer[peerproto.FollowUp, peerproto.FollowDown]) error {
	for _, m := range p.says {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

// TestNewerServerPublishes lets a later version say what it has changed. What this version does not know ends the stream, because caches would be
// old otherwise.
func TestNewerServerPublishes(t *testing.T) {
	effect := &peerproto.FollowDown{Position: 1, Pong: 1, Entries: []*peerproto.Entry{{Entry: &peerproto.Entry_Effect{Effect: &peerproto.Effect{
		Account: []byte("prod"), Objects: true, Changed: []*peerproto.ChangedObject{{KindId: 7, Name: []byte("web")}}}}}}}
	unknown := &peerproto.FollowDown{Position: 2, Entries: []*peerproto.Entry{{}}}
	stream := followNewer(t, newerPublisher{says: []*peerproto.FollowDown{newer(effect), newer(unknown)}})
	batch, err := stream.Receive()
	if err != nil || len(batch.Entries) != 1 || batch.Entries[0].Effect == nil || batch.Entries[0].Effect.Account != "prod" || !batch.Entries[0].Effect.Objects {
		t.Errorf("got %+v, %v, want the effect", batch, err)
	}
	if batch, err = stream.Receive(); err == nil || !strings.Contains(err.Error(), "upgrade the older of the two") {
		t.Errorf("an entry that this version does not know: got %+v, %v, want an error", batch, err)
	}
}

// followNewer returns a stream from a server.
func followNewer(t *testing.T, from newerPublisher) coherence.Stream {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	members, identities := fixedMembers{}, map[vedette.ServerID]*Identity{}
	for _, id := range []vedette.ServerID{"later", "s1"} {
		if identities[id], err = NewIdentity(); err != nil {
			t.Fatal(err)
		}
		members[id] = Peer{ID: id, Process: "of-" + string(id), Address: on.Addr().String(), Key: identities[id].Key()}
	}
	log := slog.New(slog.DiscardHandler)
	srv := grpc.NewServer(grpc.Creds(newServerCredentials(identities["later"], members, newConnections(), log)), grpc.ForceServerCodecV2(wire.Codec()))
	peerproto.RegisterCoherenceServer(srv, from)
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(on) }()
	cfg := testConfig
	cfg.Members, cfg.Self, cfg.Identity = members, "s1", identities["s1"]
	client := NewClient(cfg, nil, log)
	ran := make(chan error, 1)
	go func() { ran <- client.Run(t.Context()) }()
	t.Cleanup(func() {
		srv.Stop()
		<-served
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	stream, err := client.Follow(t.Context(), "later")
	if err != nil {
		t.Fatal(err)
	}
	return stream
}
