// Package readtest sets up a small fleet in a real store, for the tests of
// those who read it.
package readtest

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/views"
	"github.com/vedette-io/vedette/server/views/viewstest"
)

// World is a store on SQLite, the hub that tells of its changes, and the agents
// that would be connected.
type World struct {
	t     testing.TB
	Store *store.Store
	Hub   *ingest.Hub
	Fleet *Fleet

	terms map[vedette.AccountName]vedette.Term
	feeds map[vedette.AccountName][]store.DeclaredFeed
	last  int // resourceVersion
}

// New returns a world without accounts.
func New(t testing.TB) *World {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "vedette.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &World{t: t, Store: s, Hub: ingest.NewHub(), Fleet: &Fleet{seen: map[vedette.AccountName]time.Time{}, live: map[vedette.AccountName]bool{}},
		terms: map[vedette.AccountName]vedette.Term{}, feeds: map[vedette.AccountName][]store.DeclaredFeed{}}
}

// Account registers an account whose agent is connected and reports kinds, each
// live. A kind is written as views.Find takes it, or is a resource.
func (w *World) Account(name vedette.AccountName, kinds ...any) {
	w.t.Helper()
	w.Register(vedette.Account{Name: name}, kinds...)
}

// Register is Account for an account with properties.
func (w *World) Register(a vedette.Account, kinds ...any) {
	w.t.Helper()
	name := a.Name
	if a.Cluster == (vedette.Cluster{}) {
		a.Cluster = vedette.Cluster{UID: "uid-" + string(name), Host: "https://" + string(name) + ".example.com:6443", Version: "v1.36.3"}
	}
	_, err := w.Store.Register(w.t.Context(), a)
	w.check(err)
	term, err := w.Store.Acquire(w.t.Context(), name, store.Holder{Agent: vedette.AgentID("agent-" + name), Server: "server-1", Account: &a})
	w.check(err)
	w.terms[name] = term
	w.feeds[name] = nil
	for _, k := range kinds {
		r := w.resource(k)
		w.feeds[name] = append(w.feeds[name], store.DeclaredFeed{Feed: vedette.Feed{Kind: r.Kind}, Resource: r})
	}
	_, err = w.Store.Declare(w.t.Context(), name, term, w.feeds[name], nil)
	w.check(err)
	for _, f := range w.feeds[name] {
		w.State(name, f.Feed.Kind, vedette.FeedLive, "")
	}
	w.Fleet.Connect(name)
}

func (w *World) resource(kind any) vedette.Resource {
	if r, ok := kind.(vedette.Resource); ok {
		return r
	}
	r, err := views.Find(nil, kind.(string))
	w.check(err)
	return r
}

func (w *World) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// State sets the state of a feed.
func (w *World) State(account vedette.AccountName, kind vedette.Kind, state vedette.FeedState, message string) {
	w.t.Helper()
	w.commit(store.Batch{Account: account, Feeds: []store.FeedUpdate{{Feed: vedette.Feed{Kind: kind}, State: state, Message: message}}})
}

// Put stores manifests, and returns the objects.
func (w *World) Put(account vedette.AccountName, manifests ...string) []vedette.Object {
	w.t.Helper()
	var objects []vedette.Object
	for _, m := range manifests {
		objects = append(objects, w.object(m))
	}
	w.commit(store.Batch{Account: account, Upserts: objects})
	return objects
}

// PutBody is Put for a body that is not the manifest.
func (w *World) PutBody(account vedette.AccountName, manifest, body string) {
	w.t.Helper()
	o := w.object(manifest)
	o.Body = []byte(body)
	w.commit(store.Batch{Account: account, Upserts: []vedette.Object{o}})
}

func (w *World) object(manifest string) vedette.Object {
	w.t.Helper()
	o := viewstest.Object(w.t, manifest)
	w.last++
	o.ResourceVersion = fmt.Sprint(w.last)
	if o.UID == "" {
		o.UID = fmt.Sprintf("00000000-0000-4000-8000-%012d", w.last)
	}
	return o
}

// Delete removes objects.
func (w *World) Delete(account vedette.AccountName, keys ...vedette.Key) {
	w.t.Helper()
	var deletes []store.Deletion
	for _, key := range keys {
		deletes = append(deletes, store.Deletion{Key: key})
	}
	w.commit(store.Batch{Account: account, Deletes: deletes})
}

func (w *World) commit(b store.Batch) {
	w.t.Helper()
	b.Term = w.terms[b.Account]
	changes, err := w.Store.Commit(w.t.Context(), b)
	w.check(err)
	w.Hub.Publish(changes)
}

// Fleet is the agents that would be connected.
type Fleet struct {
	mu   sync.Mutex
	seen map[vedette.AccountName]time.Time
	live map[vedette.AccountName]bool
	list []api.Agent
}

// Connect makes an account's agent be there, and what it reports complete as of
// now.
func (f *Fleet) Connect(account vedette.AccountName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[account], f.seen[account] = true, time.Now()
}

// Lose makes an account's agent be gone.
func (f *Fleet) Lose(account vedette.AccountName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[account] = false
}

// Set says which agents are connected.
func (f *Fleet) Set(agents ...api.Agent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = agents
}

// Agents returns what Set said.
func (f *Fleet) Agents() []api.Agent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list
}

// Freshness returns what Connect and Lose said.
func (f *Fleet) Freshness(account vedette.AccountName) (seen time.Time, live bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[account], f.live[account]
}
