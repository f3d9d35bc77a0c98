package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/peer/peerproto"
)

func updateExample() assigner.Update {
	return assigner.Update{
		Agents: []assignment.AgentUpdate{{Member: 7, ID: "a\xff", ZoneID: "z", Load: 4711, IsSilent: true, Heard: 3 * time.Second, Settled: time.Minute}},
		Left:   []assignment.MemberID{3, 4},
		Accounts: []assignment.AccountUpdate{{Account: "prod\xfe", Term: 9, IsHeld: true},
			{Account: "test", Term: 3, Standbys: []assignment.StandbyUpdate{{Member: 7, Likeness: assignment.Likeness{1, 2}, IsFailing: true}, {Member: 8}}}},
		Offers:     []assignment.Offer{{Account: "prod", Term: 9, Number: 5, Member: 6, From: 7, Reason: assignment.ReasonBalance, Weight: 100, Load: 900}},
		Declined:   []assigner.Declined{{Account: "prod", Number: 12}},
		IsDraining: true,
	}
}

// overTheWire returns what arrives of what is told.
func overTheWire(t *testing.T, update assigner.Update) (got assigner.Update, messages int) {
	t.Helper()
	for _, m := range fromUpdate(update) {
		text, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > maxMessage {
			t.Errorf("a message has %d bytes, want at most %d", len(text), maxMessage)
		}
		var arrived peerproto.Update
		if err := proto.Unmarshal(text, &arrived); err != nil {
			t.Fatal(err)
		}
		part, err := toUpdate(&arrived)
		if err != nil {
			t.Fatal(err)
		}
		got.Agents, got.Left, got.Accounts = append(got.Agents, part.Agents...), append(got.Left, part.Left...), append(got.Accounts, part.Accounts...)
		got.Offers, got.Declined = append(got.Offers, part.Offers...), append(got.Declined, part.Declined...)
		got.IsDraining = part.IsDraining
		messages++
	}
	return got, messages
}

func TestUpdatesArrive(t *testing.T) {
	if got, _ := overTheWire(t, updateExample()); !reflect.DeepEqual(got, updateExample()) {
		t.Errorf("got %+v, want %+v", got, updateExample())
	}
	if got, messages := overTheWire(t, assigner.Update{}); messages != 1 || !reflect.DeepEqual(got, assigner.Update{}) {
		t.Errorf("nothing: got %+v in %d messages, want one that is empty", got, messages)
	}
	large := assigner.Update{IsDraining: true}
	for n := range assigner.MaxUpdates {
		a := assignment.AccountUpdate{Account: vedette.AccountName(strings.Repeat("n", 250) + fmt.Sprint(n))}
		for id := range 2 * maxUpdateStandbys {
			a.Standbys = append(a.Standbys, assignment.StandbyUpdate{Member: assignment.MemberID(id)})
		}
		large.Accounts = append(large.Accounts, a)
	}
	got, messages := overTheWire(t, large)
	if len(got.Accounts) != len(large.Accounts) || messages < 10 || !got.IsDraining {
		t.Errorf("got %d accounts in %d messages, want %d", len(got.Accounts), messages, len(large.Accounts))
	}
	for i, a := range got.Accounts {
		if a.Account != large.Accounts[i].Account || !slices.Equal(a.Standbys, large.Accounts[i].Standbys[:maxUpdateStandbys]) {
			t.Errorf("account %d has %d standbys, want the first %d", i, len(a.Standbys), maxUpdateStandbys)
		}
	}
}

// TestMalformedUpdatesAreRefused decodes messages that no server sends.
func TestMalformedUpdatesAreRefused(t *testing.T) {
	long := []byte(strings.Repeat("n", maxUpdateName+1))
	for name, m := range map[string]*peerproto.Update{
		"an agent without a number":   {Agents: []*peerproto.AgentUpdate{{Id: []byte("a")}}},
		"a long id":                   {Agents: []*peerproto.AgentUpdate{{Member: 1, Id: long}}},
		"a long zone":                 {Agents: []*peerproto.AgentUpdate{{Member: 1, Zone: long}}},
		"an account without a name":   {Accounts: []*peerproto.AccountUpdate{{Term: 1}}},
		"a long name":                 {Accounts: []*peerproto.AccountUpdate{{Account: long}}},
		"too many standbys":           {Accounts: []*peerproto.AccountUpdate{{Account: []byte("a"), Standbys: make([]*peerproto.StandbyUpdate, maxUpdateStandbys+1)}}},
		"a short likeness":            {Accounts: []*peerproto.AccountUpdate{{Account: []byte("a"), Standbys: []*peerproto.StandbyUpdate{{Likeness: []byte("x")}}}}},
		"a standby that is empty":     {Accounts: []*peerproto.AccountUpdate{{Account: []byte("a"), Standbys: []*peerproto.StandbyUpdate{nil}}}},
		"an offer without a name":     {Offers: []*peerproto.Offer{{Term: 1}}},
		"an offer with a long reason": {Offers: []*peerproto.Offer{{Account: []byte("a"), Reason: string(long)}}},
	} {
		if _, err := toUpdate(m); !errors.Is(err, errBadPeer) {
			t.Errorf("%s: got %v, want that it is refused", name, err)
		}
	}
	got, err := toUpdate(&peerproto.Update{Agents: []*peerproto.AgentUpdate{{Member: 1, HeardMillis: 1 << 62, SettledMillis: -5}, nil}[:1]})
	if err != nil || got.Agents[0].Heard != time.Hour || got.Agents[0].Settled != 0 {
		t.Errorf("got %+v, %v, want an hour and nothing", got, err)
	}
}

// TestServersListen has a server listen to another one, over a connection.
func TestServersListen(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	members, identities := fixedMembers{}, map[vedette.ServerID]*Identity{}
	for _, id := range []vedette.ServerID{"s1", "s2"} {
		if identities[id], err = NewIdentity(); err != nil {
			t.Fatal(err)
		}
		members[id] = Peer{ID: id, Process: "of-" + string(id), Address: listener.Addr().String(), Key: identities[id].Key()}
	}
	cfg := testConfig
	cfg.Members, cfg.Self, cfg.Identity = members, "s1", identities["s1"]
	log := slog.New(slog.DiscardHandler)
	assignments := assigner.New("s1", assignment.Config{IsShared: true}, nil, nil, log)
	defer assignments.Close()
	srv := NewServer(cfg, nil, log)
	srv.SetAssignments(assignments)
	cfg.Self, cfg.Identity = "s2", identities["s2"]
	client := NewClient(cfg, nil, log)
	var group errgroup.Group
	group.Go(func() error { return srv.Serve(t.Context(), listener) })
	group.Go(func() error { return client.Run(t.Context()) })
	t.Cleanup(func() {
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	next, err := client.Listen(ctx, "s1")
	if err != nil {
		t.Fatal(err)
	}
	if update, err := next(); err != nil || !reflect.DeepEqual(update, assigner.Update{}) {
		t.Fatalf("got %+v, %v, want that there is nothing yet", update, err)
	}
	assignments.Drain()
	for {
		update, err := next()
		if err != nil {
			t.Fatal(err)
		}
		if update.IsDraining {
			break
		}
	}
	cancel()
	if _, err := next(); err == nil {
		t.Error("the stream goes on after its context has ended")
	}
	if _, err := client.Listen(t.Context(), "s3"); vedette.KindOf(err) != vedette.Unavailable {
		t.Errorf("a server that does not run: got %v, want that it is unavailable", err)
	}
}
