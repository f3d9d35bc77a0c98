// Package readtest provides a small fleet in a real store, for tests of the APIs that read it.
package readtest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/tables"
	"github.com/vedette-io/vedette/server/tables/tablestest"
)

// Fixture is a store on SQLite, a hub that publishes its changes, and a fake fleet.
type Fixture struct {
	t     testing.TB
	Store *store.Store
	Hub   *ingest.Hub
	Fleet *Fleet

	terms       map[vedette.AccountName]vedette.Term
	feeds       map[vedette.AccountName][]commit.DeclaredFeed
	lastVersion int // last resourceVersion
}

// New returns a Fixture without accounts.
func New(t testing.TB) *Fixture {
	t.Helper()
	s, err := store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "vedette.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Fixture{t: t, Store: s, Hub: ingest.NewHub(),
		Fleet: &Fleet{freshAt: map[vedette.AccountName]time.Time{}, live: map[vedette.AccountName]bool{}},
		terms: map[vedette.AccountName]vedette.Term{}, feeds: map[vedette.AccountName][]commit.DeclaredFeed{}}
}

// Account registers an account with a connected agent that reports kinds, all live. A kind is a
// vedette.Resource, or a string as for tables.FindResource.
func (f *Fixture) Account(name vedette.AccountName, kinds ...any) {
	f.t.Helper()
	f.Register(vedette.Account{Name: name}, kinds...)
}

// Register is like Account, for an account with properties.
func (f *Fixture) Register(a vedette.Account, kinds ...any) {
	f.t.Helper()
	name := a.Name
	if a.Cluster == (vedette.Cluster{}) {
		a.Cluster = vedette.Cluster{UID: "uid-" + string(name), Host: "https://" + string(name) + ".example.com:6443", Version: "v1.36.3"}
	}
	_, err := f.Store.Register(f.t.Context(), a)
	f.check(err)
	term, err := f.Store.Acquire(f.t.Context(), name, registry.CacherClaim{Agent: vedette.AgentID("agent-" + name), Server: "server-1",
		Account: &a})
	f.check(err)
	f.terms[name] = term
	f.feeds[name] = nil
	for _, k := range kinds {
		r := f.resource(k)
		f.feeds[name] = append(f.feeds[name], commit.DeclaredFeed{Feed: vedette.Feed{Kind: r.Kind}, Resource: r})
	}
	_, err = f.Store.Declare(f.t.Context(), name, term, f.feeds[name], nil)
	f.check(err)
	for _, feed := range f.feeds[name] {
		f.SetFeedState(name, feed.Feed.Kind, vedette.FeedLive, "")
	}
	f.check(f.Store.RecordLastSeen(f.t.Context(), []registry.LastSeen{{Account: name, Term: term, At: time.Now()}}))
	f.check(f.Store.MarkSettled(f.t.Context(), name, term, true))
	f.Fleet.Connect(name)
}

func (f *Fixture) resource(kind any) vedette.Resource {
	if r, ok := kind.(vedette.Resource); ok {
		return r
	}
	r, err := tables.FindResource(nil, kind.(string))
	f.check(err)
	return r
}

func (f *Fixture) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *Fixture) SetFeedState(account vedette.AccountName, kind vedette.Kind, state vedette.FeedState, message string) {
	f.t.Helper()
	f.commit(commit.Batch{Account: account, Feeds: []commit.FeedUpdate{{Feed: vedette.Feed{Kind: kind}, State: state, Message: message}}})
}

// Put stores manifests and returns the objects.
func (f *Fixture) Put(account vedette.AccountName, manifests ...string) []vedette.Object {
	f.t.Helper()
	var objects []vedette.Object
	for _, m := range manifests {
		objects = append(objects, f.object(m))
	}
	f.commit(commit.Batch{Account: account, Upserts: objects})
	return objects
}

// PutBody is like Put, with a body that differs from the manifest.
func (f *Fixture) PutBody(account vedette.AccountName, manifest, body string) {
	f.t.Helper()
	o := f.object(manifest)
	o.Body = []byte(body)
	f.commit(commit.Batch{Account: account, Upserts: []vedette.Object{o}})
}

func (f *Fixture) object(manifest string) vedette.Object {
	f.t.Helper()
	o := tablestest.Object(f.t, manifest)
	f.lastVersion++
	o.ResourceVersion = fmt.Sprint(f.lastVersion)
	if o.UID == "" {
		o.UID = fmt.Sprintf("00000000-0000-4000-8000-%012d", f.lastVersion)
	}
	return o
}

// Delete deletes objects.
func (f *Fixture) Delete(account vedette.AccountName, keys ...vedette.Key) {
	f.t.Helper()
	var deletes []commit.Deletion
	for _, key := range keys {
		deletes = append(deletes, commit.Deletion{Key: key})
	}
	f.commit(commit.Batch{Account: account, Deletes: deletes})
}

func (f *Fixture) commit(b commit.Batch) {
	f.t.Helper()
	b.Term = f.terms[b.Account]
	changes, err := f.Store.Commit(f.t.Context(), b)
	f.check(err)
	f.Hub.Publish(changes)
}

// Fleet is a fake of the connected agents.
type Fleet struct {
	mu      sync.Mutex
	freshAt map[vedette.AccountName]time.Time
	live    map[vedette.AccountName]bool
	list    []api.Agent
}

// Connect marks an account's agent as connected, and the account as fresh now.
func (f *Fleet) Connect(account vedette.AccountName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[account], f.freshAt[account] = true, time.Now()
}

// Disconnect marks an account's agent as disconnected.
func (f *Fleet) Disconnect(account vedette.AccountName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[account] = false
}

// SetAgents sets the connected agents.
func (f *Fleet) SetAgents(agents ...api.Agent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = agents
}

// Agents returns the agents that SetAgents set.
func (f *Fleet) Agents(context.Context) ([]api.Agent, []vedette.ServerID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list, nil
}

// AgentsOf returns the agents that SetAgents set with an account.
func (f *Fleet) AgentsOf(ctx context.Context, account vedette.AccountName) []api.Agent {
	var agents []api.Agent
	all, _ := f.Agents(ctx)
	for _, agent := range all {
		agent.Accounts = slices.DeleteFunc(slices.Clone(agent.Accounts), func(a api.AgentAccount) bool { return a.Name != account })
		if len(agent.Accounts) > 0 {
			agents = append(agents, agent)
		}
	}
	return agents
}

// Completeness returns that it is unknown.
func (f *Fleet) Completeness(vedette.AccountName) time.Time { return time.Time{} }

// Freshness returns what Connect and Disconnect set.
func (f *Fleet) Freshness(account vedette.AccountName) (freshAt time.Time, live bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.freshAt[account], f.live[account]
}
