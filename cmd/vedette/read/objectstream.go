package read

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/vedette-io/vedette/internal/client"
)

// objectStream tells waiting accounts what agents report of one object, or of the objects of a selection. It is one
// stream of the server for all accounts.
type objectStream struct {
	client *client.Client
	query  client.Query

	mu sync.Mutex
	// isReady is true while the stream sends changes as they happen.
	isReady bool
	// isComplete is false if the server does not list all feeds that are not live.
	isComplete bool
	notLive    map[string]bool // accounts that have feeds of the kind that are not live, or none
	waiting    map[string][]*subscription
}

// subscription is one object that somebody waits for.
type subscription struct {
	stream                   *objectStream
	account, namespace, name string // an empty namespace means any, until the object was read
	wake                     chan struct{}
	last                     report
}

// report is what an agent has reported of an object.
type report struct {
	object *client.Object // nil for nothing
	gone   bool           // it was deleted, and maybe created again
}

func newObjectStream(c *client.Client, query client.Query) *objectStream {
	query.Manifests = true
	return &objectStream{client: c, query: query, notLive: map[string]bool{}, waiting: map[string][]*subscription{}}
}

// run follows the changes until ctx ends, or the server does not know the kind.
func (s *objectStream) run(ctx context.Context) {
	_ = s.client.Follow(ctx, s.query, s.handle, func(err error) error {
		s.end()
		if client.IsPermanent(err) {
			return err
		}
		return nil
	}) // without the stream, clusters are read, and say what is wrong
}

// end records that the stream has ended. Everybody who waits reads the cluster.
func (s *objectStream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isReady = false
	for _, subs := range s.waiting {
		for _, sub := range subs {
			sub.notify()
		}
	}
}

func (s *objectStream) handle(e client.Event) error {
	switch e.Type {
	case "added", "modified", "deleted":
		var o client.Object
		if err := json.Unmarshal(e.Data, &o); err != nil {
			return err
		}
		s.report(&o, e.Type == "deleted")
	case "ready", "heartbeat":
		var f client.Freshness
		if err := json.Unmarshal(e.Data, &f); err != nil {
			return err
		}
		s.setFreshness(f)
	}
	return nil
}

func (s *objectStream) report(o *client.Object, deleted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.waiting[o.Account+"/"+o.Name] {
		if sub.namespace != "" && sub.namespace != o.Namespace {
			continue
		}
		sub.last.gone = sub.last.gone || deleted
		if sub.last.object = o; deleted {
			sub.last.object = nil
		}
		sub.notify()
	}
}

// setFreshness records which accounts can be followed. Whoever waits for another one begins to read its cluster.
func (s *objectStream) setFreshness(f client.Freshness) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isReady, s.isComplete = true, f.Unlisted == 0 && f.FeedCount > 0
	clear(s.notLive)
	for _, feed := range f.Feeds {
		s.notLive[feed.Account] = true
	}
	for _, subs := range s.waiting {
		for _, sub := range subs {
			if !s.isLiveLocked(sub.account) {
				sub.notify()
			}
		}
	}
}

func (s *objectStream) isLiveLocked(account string) bool {
	return s.isReady && s.isComplete && !s.notLive[account]
}

// subscribe begins to collect what is reported of an object. Call it before the object is read, so that nothing is
// missed.
func (s *objectStream) subscribe(account, namespace, name string) *subscription {
	sub := &subscription{stream: s, account: account, namespace: namespace, name: name, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[account+"/"+name] = append(s.waiting[account+"/"+name], sub)
	return sub
}

// setNamespace sets the namespace that the cluster has shown. Reports of objects of the same name in others do not count.
func (sub *subscription) setNamespace(namespace string) {
	sub.stream.mu.Lock()
	defer sub.stream.mu.Unlock()
	if sub.namespace = namespace; sub.last.object != nil && sub.last.object.Namespace != namespace {
		sub.last.object = nil
	}
}

func (sub *subscription) notify() {
	select {
	case sub.wake <- struct{}{}:
	default: // it is awake already
	}
}

// take returns what was reported since the last call, and whether further changes will be reported.
func (sub *subscription) take() (last report, isLive bool) {
	sub.stream.mu.Lock()
	defer sub.stream.mu.Unlock()
	last, sub.last = sub.last, report{}
	return last, sub.stream.isLiveLocked(sub.account)
}

// close ends the subscription.
func (sub *subscription) close() {
	sub.stream.mu.Lock()
	defer sub.stream.mu.Unlock()
	key := sub.account + "/" + sub.name
	var kept []*subscription
	for _, other := range sub.stream.waiting[key] {
		if other != sub {
			kept = append(kept, other)
		}
	}
	sub.stream.waiting[key] = kept
}
