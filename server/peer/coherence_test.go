package peer

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/coherence"
	"github.com/vedette-io/vedette/server/peer/peerproto"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/versions"
)

// reportingFleet is the agents of a server.
type reportingFleet struct {
	accounts int
	json     []byte
}

func (f reportingFleet) Reports() []coherence.Report {
	reports := []coherence.Report{}
	for n := range f.accounts {
		reports = append(reports, coherence.Report{Account: vedette.AccountName(fmt.Sprint("account-", n)), FreshAt: time.Now()})
	}
	return reports
}

func (f reportingFleet) AgentsJSON() ([]byte, error) { return f.json, nil }

// fixedMembers are servers that do not change.
type fixedMembers map[vedette.ServerID]Peer

func (m fixedMembers) Peer(id vedette.ServerID) (Peer, bool) { p, ok := m[id]; return p, ok }

func (m fixedMembers) Changed() <-chan struct{} { return nil }

func (m fixedMembers) ByKey(key [32]byte) (Peer, bool) {
	for _, p := range m {
		if p.Key == key {
			return p, true
		}
	}
	return Peer{}, false
}

// newPublishing starts a server that publishes, and returns a client of another one.
func newPublishing(t *testing.T, fleet Fleet) (*coherence.Publisher, *Client) {
	t.Helper()
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
	publisher := coherence.NewPublisher()
	srv := NewServer(cfg, nil, slog.New(slog.DiscardHandler))
	srv.SetCoherence(publisher, fleet)
	cfg.Self, cfg.Identity = "s2", identities["s2"]
	client := NewClient(cfg, nil, slog.New(slog.DiscardHandler))
	var group errgroup.Group
	group.Go(func() error { return srv.Serve(t.Context(), listener) })
	group.Go(func() error { return client.Run(t.Context()) })
	t.Cleanup(func() {
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	return publisher, client
}

// TestWhatIsPublishedArrives publishes entries of every kind, some larger than a message, with names that are not UTF-8.
func TestWhatIsPublishedArrives(t *testing.T) {
	publisher, client := newPublishing(t, reportingFleet{accounts: 20_000})
	stream, err := client.Follow(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Ping(coherence.Ping{ID: 1}); err != nil {
		t.Fatal(err)
	}
	if batch, err := stream.Receive(); err != nil || batch.Pong != 1 || batch.Ages != nil {
		t.Fatalf("got %+v, %v, want an answer without ages", batch, err)
	}
	small := &versions.Message{Account: "prod\xff", Objects: true, Clusters: true, AccountRow: true,
		Changed: []versions.ChangedObject{{KindID: 7, Namespace: "n\xfe", Name: "web", Account: "prod\xff", Application: "shop"}}}
	unnamed := &versions.Message{Account: "prod", Objects: true, IsUnnamed: true, Applications: bytes.Repeat([]byte{1}, 512), Namespaces: []byte{2}}
	large := &versions.Message{Account: "large", Objects: true}
	for n := range 9000 {
		large.Changed = append(large.Changed, versions.ChangedObject{Account: "large", Namespace: strings.Repeat("n", 63), Name: fmt.Sprint(n)})
	}
	changes := []commit.Change{{Account: "prod", Type: commit.Deleted, Key: vedette.Key{Kind: vedette.Kind{Group: "apps", Name: "Deployment"},
		Namespace: "n", Name: "web"}}, {Account: "test", Type: commit.Added, Version: "7", Key: vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Name: "p"}}}
	if err := stream.Ping(coherence.Ping{ID: 2, WantsChanges: true}); err != nil {
		t.Fatal(err)
	}
	if batch, err := stream.Receive(); err != nil || batch.Pong != 2 {
		t.Fatal(batch, err)
	}
	for _, e := range []coherence.Entry{{Effect: small}, {Effect: unnamed}, {Effect: large}, {Changes: changes}} {
		publisher.Publish(e)
	}
	if err := stream.Ping(coherence.Ping{ID: 3, WantsChanges: true, WantsReports: true}); err != nil {
		t.Fatal(err)
	}
	got := map[vedette.AccountName][]versions.Message{}
	var gotChanges []commit.Change
	var last coherence.Batch
	for last.Pong != 3 {
		if last, err = stream.Receive(); err != nil {
			t.Fatal(err)
		}
		for _, e := range last.Entries {
			gotChanges = append(gotChanges, e.Changes...)
			if e.Effect != nil {
				got[e.Effect.Account] = append(got[e.Effect.Account], *e.Effect)
			}
		}
	}
	if want := []versions.Message{*small}; !reflect.DeepEqual(got["prod\xff"], want) {
		t.Errorf("got %+v, want %+v", got["prod\xff"], want)
	}
	if want := []versions.Message{*unnamed}; !reflect.DeepEqual(got["prod"], want) {
		t.Errorf("got %+v, want %+v", got["prod"], want)
	}
	var objects []versions.ChangedObject
	for _, part := range got["large"] {
		objects = append(objects, part.Changed...)
		if !part.Objects || part.IsUnnamed {
			t.Errorf("a part means something else: %+v", part)
		}
	}
	if len(got["large"]) < 2 || !reflect.DeepEqual(objects, large.Changed) {
		t.Errorf("got %d objects in %d parts, want %d in several", len(objects), len(got["large"]), len(large.Changed))
	}
	if !reflect.DeepEqual(gotChanges, changes) {
		t.Errorf("got %+v, want %+v", gotChanges, changes)
	}
	if len(last.Ages) != 20_000 || last.Ages[19_999].Account != "account-19999" || last.Ages[0].Complete >= 0 || last.Position == 0 {
		t.Errorf("got %d ages, position %d", len(last.Ages), last.Position)
	}
}

// TestAgentsOfAnotherServer reads more about agents than a message has, and more than may be.
func TestAgentsOfAnotherServer(t *testing.T) {
	want := bytes.Repeat([]byte("agent "), 200_000)
	_, client := newPublishing(t, reportingFleet{json: want})
	if got, err := client.AgentsJSON(t.Context(), "s1"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(want))
	}
	if _, err := client.AgentsJSON(t.Context(), "s9"); vedette.KindOf(err) != vedette.Unavailable || !strings.Contains(err.Error(), "s9 does not run") {
		t.Errorf("got %v, want that it does not run", err)
	}
	_, client = newPublishing(t, reportingFleet{json: make([]byte, maxAgentsBytes+1)})
	if _, err := client.AgentsJSON(t.Context(), "s1"); vedette.KindOf(err) != vedette.Unavailable || !strings.Contains(err.Error(), "more about its agents") {
		t.Errorf("got %v, want that it is too much", err)
	}
}

// TestServersWithTooManyAccounts reads ages that do not end.
func TestServersWithTooManyAccounts(t *testing.T) {
	_, client := newPublishing(t, reportingFleet{accounts: maxAges + 1})
	stream, err := client.Follow(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Ping(coherence.Ping{ID: 1, WantsReports: true}); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		var batch coherence.Batch
		if batch, err = stream.Receive(); batch.Pong != 0 {
			t.Fatal("all ages are taken in")
		}
	}
	if vedette.KindOf(err) != vedette.Invalid {
		t.Errorf("got %v, want that they are too many", err)
	}
}

// TestMessagesOfOtherServersAreSmall splits what is larger than a message.
func TestMessagesOfOtherServersAreSmall(t *testing.T) {
	m := &versions.Message{Account: vedette.AccountName(strings.Repeat("a", 255)), Applications: make([]byte, 512), Namespaces: make([]byte, 512)}
	for range 5000 {
		m.Changed = append(m.Changed, versions.ChangedObject{Name: strings.Repeat("n", 253), Namespace: strings.Repeat("s", 63), Application: strings.Repeat("p", 250)})
	}
	messages := messagesOf(coherence.Batch{Entries: []coherence.Entry{{Effect: m}}, Position: 9, Pong: 8})
	for i, message := range messages {
		isLast := i == len(messages)-1
		if size := proto.Size(message); size > maxMessage/2 || message.GetContinues() == isLast || (message.GetPosition() == 9) != isLast {
			t.Errorf("message %d of %d has %d bytes, position %d, continues: %t", i, len(messages), size, message.GetPosition(), message.GetContinues())
		}
	}
}

// FuzzFollowDown takes in what another server may send.
func FuzzFollowDown(f *testing.F) {
	seed, err := proto.Marshal(messagesOf(coherence.Batch{Ages: []coherence.Age{{Account: "prod", Fresh: 1}}, Position: 1})[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m peerproto.FollowDown
		if proto.Unmarshal(raw, &m) != nil {
			return
		}
		for _, a := range toAges(m.GetAges()) {
			if a.Fresh < -1 || a.Complete < -1 {
				t.Errorf("got age %+v", a)
			}
		}
		entries, err := toEntries(m.GetEntries())
		if err != nil && len(entries) > 0 {
			t.Errorf("got entries and %v", err)
		}
		for _, e := range entries {
			if e.Effect != nil {
				e.Effect.Effect()
			}
		}
	})
}
