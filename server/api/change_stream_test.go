package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
)

// eventStream reads a stream of changes and validates each event against openapi.yaml.
type eventStream struct {
	t      *testing.T
	doc    *openapi3.T
	events chan client.Event
	ended  chan error
}

func openStream(t *testing.T, cfg api.Config, q client.Query) *eventStream {
	t.Helper()
	w := serve(t, cfg)
	c, err := client.New(w.url)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &eventStream{t: t, doc: w.doc, events: make(chan client.Event, 10_000), ended: make(chan error, 1)}
	go func() {
		s.ended <- c.Changes(ctx, q, func(e client.Event) error { s.events <- e; return nil })
	}()
	// The server waits for its handlers, so the request must end before the server is closed.
	// Cleanup functions run in reverse order.
	t.Cleanup(cancel)
	return s
}

// next returns the next event, as "type account/kind/namespace/name", or the error with which the stream ended. It skips heartbeats.
func (s *eventStream) next() string {
	s.t.Helper()
	for {
		e, err := s.receive()
		if err != nil {
			return "end: " + err.Error()
		}
		text := s.describe(e)
		if e.Type != "heartbeat" {
			return text
		}
	}
}

// receive returns the next event, or the error with which the stream ended after its last event.
func (s *eventStream) receive() (client.Event, error) {
	s.t.Helper()
	select {
	case e := <-s.events:
		return e, nil
	case err := <-s.ended:
		s.ended <- err
		select {
		case e := <-s.events:
			return e, nil
		default:
			return client.Event{}, err
		}
	case <-time.After(time.Minute):
		s.t.Fatal("got no event")
		return client.Event{}, nil
	}
}

func (s *eventStream) describe(e client.Event) string {
	s.t.Helper()
	var name struct{ Account, Kind, Namespace, Name string }
	if err := json.Unmarshal(e.Data, &name); err != nil {
		s.t.Fatalf("%s: invalid JSON: %v: %s", e.Type, err, e.Data)
	}
	s.validate(e)
	switch e.Type {
	case "added", "modified", "deleted":
		return e.Type + " " + name.Account + "/" + name.Kind + "/" + name.Namespace + "/" + name.Name
	}
	return e.Type
}

func (s *eventStream) validate(e client.Event) {
	s.t.Helper()
	schema := map[string]string{"added": "Object", "modified": "Object", "deleted": "ObjectName", "columns": "Columns", "ready": "Freshness",
		"heartbeat": "Freshness", "lagged": "Message", "error": "Error"}[e.Type]
	if strings.Contains(string(e.Data), `"cells"`) {
		schema = "Row"
	}
	var v any
	if err := json.Unmarshal(e.Data, &v); err != nil {
		s.t.Fatal(err)
	}
	if s.doc.Components.Schemas[schema] == nil {
		s.t.Fatalf("got event %s, which is missing in openapi.yaml", e.Type)
	}
	if err := s.doc.Components.Schemas[schema].Value.VisitJSON(v); err != nil {
		s.t.Errorf("event %s %s does not match openapi.yaml: %v", e.Type, e.Data, err)
	}
}

func (s *eventStream) expect(events ...string) {
	s.t.Helper()
	for _, want := range events {
		if got := s.next(); got != want {
			s.t.Fatalf("got event %q, want %q", got, want)
		}
	}
}

var web0 = vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "shop", Name: "web-0"}

func TestStreamHasOnlyMatchingChanges(t *testing.T) {
	world := shopWorld(t)
	s := openStream(t, configOf(world), client.Query{Account: "prod-*", Kind: "pods", Namespace: "shop"})
	s.expect("added prod-1/Pod/shop/broken-0", "added prod-1/Pod/shop/web-0", "added prod-3/Pod/shop/web-0", "ready")
	world.Put("dev", readtest.Pod("shop", "web-1", "web"))          // another account
	world.Put("prod-1", readtest.Pod("billing", "web-1", "web"))    // another namespace
	world.Put("prod-1", readtest.Deployment("shop", "invoices", 2)) // another kind
	world.Put("prod-1", readtest.Pod("shop", "web-1", "web"))
	s.expect("added prod-1/Pod/shop/web-1")
	world.Put("prod-1", readtest.Pod("shop", "web-1", "other"))
	s.expect("modified prod-1/Pod/shop/web-1")
	world.Delete("prod-1", web0)
	s.expect("deleted prod-1/Pod/shop/web-0")
	world.Account("prod-9", "pods") // an account that is registered later
	world.Put("prod-9", readtest.Pod("shop", "web-0", "web"))
	s.expect("added prod-9/Pod/shop/web-0")
}

// TestChangesEnteringAndLeavingSelection checks objects that start and stop matching a filter.
func TestChangesEnteringAndLeavingSelection(t *testing.T) {
	for name, q := range map[string]client.Query{"by selector": {Account: "dev", Selector: "app=web", Kind: "pods"}, "by application": {Account: "dev", Application: "web", Kind: "pods"}} {
		t.Run(name, func(t *testing.T) {
			world := shopWorld(t)
			s := openStream(t, configOf(world), q)
			s.expect("added dev/Pod/shop/web-0", "ready")
			world.Put("dev", readtest.Pod("shop", "other-0", "other"))
			world.Put("dev", readtest.Pod("shop", "web-0", "other"))
			s.expect("deleted dev/Pod/shop/web-0")
			world.Put("dev", readtest.Pod("shop", "other-0", "web"))
			s.expect("added dev/Pod/shop/other-0")
			world.Delete("dev", web0) // it does not match any more
			world.Put("dev", readtest.Pod("shop", "other-0", "web"))
			s.expect("modified dev/Pod/shop/other-0")
		})
	}
}

func TestChangesAsTable(t *testing.T) {
	world := shopWorld(t)
	s := openStream(t, configOf(world), client.Query{Account: "dev", Kind: "pods", Table: true})
	s.expect("columns", "added dev//shop/web-0", "ready")
	world.Put("dev", readtest.CrashingPod("shop", "web-0"))
	e := <-s.events
	var row client.Row
	if err := json.Unmarshal(e.Data, &row); err != nil || row.Cells[1] != "CrashLoopBackOff" {
		t.Errorf("got %s %s", e.Type, e.Data)
	}
}

func TestChangesWithManifests(t *testing.T) {
	world := shopWorld(t)
	for _, manifests := range []bool{true, false} {
		s := openStream(t, configOf(world), client.Query{Account: "dev", Kind: "pods", Manifests: manifests})
		var first client.Object
		if err := json.Unmarshal((<-s.events).Data, &first); err != nil || (len(first.Manifest) > 0) != manifests {
			t.Errorf("got initial manifest %s, include=body %v", first.Manifest, manifests)
		}
		s.expect("ready")
		world.Put("dev", readtest.Pod("shop", "web-0", "again"))
		var later client.Object
		if err := json.Unmarshal((<-s.events).Data, &later); err != nil || (len(later.Manifest) > 0) != manifests {
			t.Errorf("got later manifest %s, include=body %v", later.Manifest, manifests)
		}
	}
}

// TestMultiLineBodyIsOneEvent checks that a body with line breaks is sent as one event. API
// servers do not send such bodies, but agents could.
func TestMultiLineBodyIsOneEvent(t *testing.T) {
	world := shopWorld(t)
	s := openStream(t, configOf(world), client.Query{Account: "dev", Kind: "pods", Manifests: true})
	s.expect("added dev/Pod/shop/web-0", "ready")
	world.PutBody("dev", readtest.Pod("shop", "web-1", "web"), "{\n\"kind\":\r\n\"Pod\"}")
	e := <-s.events
	var o client.Object
	if err := json.Unmarshal(e.Data, &o); err != nil || !json.Valid(o.Manifest) || !strings.Contains(string(o.Manifest), "Pod") {
		t.Errorf("event %s %s: %v", e.Type, e.Data, err)
	}
}

// blockingStore is a store that blocks until the test releases it.
type blockingStore struct {
	*store.Store
	started, release chan struct{}
}

func (s blockingStore) Object(ctx context.Context, account vedette.AccountName, key vedette.Key) (read.Row, error) {
	s.started <- struct{}{}
	<-s.release
	return s.Store.Object(ctx, account, key)
}

func TestSlowReaderGetsLagged(t *testing.T) {
	world := shopWorld(t)
	db := blockingStore{world.Store, make(chan struct{}, 10_000), make(chan struct{})}
	cfg := configOf(world)
	cfg.Store = db
	s := openStream(t, cfg, client.Query{Account: "dev", Kind: "pods"})
	s.expect("added dev/Pod/shop/web-0", "ready")
	change := commit.Change{Account: "dev", Key: web0, Type: commit.Modified}
	world.Hub.Publish([]commit.Change{change})
	<-db.started             // it is blocked by the first change
	for i := range 100_000 { // more than the log holds, and what is left of it is more than the queue
		c := change
		c.Key.Name = "gone-" + strings.Repeat("x", i%7)
		world.Hub.Publish([]commit.Change{c})
	}
	close(db.release)
	for got := s.next(); got != "lagged"; got = s.next() {
		if got != "modified dev/Pod/shop/web-0" {
			t.Fatalf("got event %q, want lagged", got)
		}
	}
	if got := s.next(); !strings.HasPrefix(got, "end:") {
		t.Errorf("got %q after lagged, want the end", got)
	}
}

func TestHeartbeatReportsStaleFeeds(t *testing.T) {
	world := shopWorld(t)
	cfg := configOf(world)
	cfg.HeartbeatInterval = 5 * time.Millisecond
	s := openStream(t, cfg, client.Query{Kind: "pods", Account: "dev"})
	s.expect("added dev/Pod/shop/web-0", "ready")
	world.Fleet.Disconnect("dev")
	deadline := time.After(time.Minute)
	for {
		select {
		case e := <-s.events:
			s.validate(e)
			var f struct {
				Stale     bool
				Freshness []client.FeedFreshness
			}
			if err := json.Unmarshal(e.Data, &f); err != nil {
				t.Fatal(err)
			}
			if f.Stale && len(f.Freshness) == 1 && f.Freshness[0].Account == "dev" {
				return
			}
		case <-deadline:
			t.Fatal("got no heartbeat with stale feeds after the agent was lost")
		}
	}
}

type failingGetStore struct{ *store.Store }

func (failingGetStore) Object(context.Context, vedette.AccountName, vedette.Key) (read.Row, error) {
	return read.Row{}, errors.New("secret text of a driver")
}

func TestStreamReportsInternalError(t *testing.T) {
	world := shopWorld(t)
	cfg := configOf(world)
	cfg.Store = failingGetStore{world.Store}
	s := openStream(t, cfg, client.Query{Kind: "pods", Account: "dev"})
	s.expect("added dev/Pod/shop/web-0", "ready")
	world.Put("dev", readtest.Pod("shop", "web-0", "again"))
	e, err := s.receive()
	if err != nil {
		t.Fatalf("the stream ended without an event: %v", err)
	}
	s.validate(e)
	if e.Type != "error" || strings.Contains(string(e.Data), "secret") || !strings.Contains(string(e.Data), `"internal"`) {
		t.Errorf("got %s %s", e.Type, e.Data)
	}
}
