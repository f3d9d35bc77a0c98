package watch

import (
	"bytes"
	"context"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

// keepUnknownGroups keeps the feeds of groups that could not be discovered, because an
// aggregated API server that is down says nothing about its objects. It keeps no feed of a
// kind that is served under another plural or in another scope: that is another kind.
func (w *Watcher) keepUnknownGroups(cat kube.Catalogue, specs []FeedSpec) []FeedSpec {
	index := map[vedette.Feed]int{}
	for i, n := range specs {
		index[n.Feed] = i
	}
	served := servedKinds(cat)
	for _, old := range w.declared {
		if !slices.Contains(cat.UnknownGroups, old.Kind.Group) {
			continue
		}
		i, ok := index[old.Feed]
		switch {
		case ok && sameObjects(specs[i], old):
			specs[i] = old // keep its version too
		case !ok && !served[old.Kind]:
			specs = append(specs, old)
		}
	}
	return specs
}

// sameObjects reports whether two specs of a feed show the same objects. All versions of a
// kind do. A definition that was deleted and created again with another plural or scope
// defines other objects.
func sameObjects(a, b FeedSpec) bool {
	return a.Resource.Plural == b.Resource.Plural && a.Resource.Namespaced == b.Resource.Namespaced
}

// sameSpec reports whether two feeds are read with the same requests.
func sameSpec(a, b FeedSpec) bool {
	return a.Feed == b.Feed && a.Resource.Version == b.Resource.Version && a.Resource.Plural == b.Resource.Plural &&
		a.Resource.Namespaced == b.Resource.Namespaced && slices.Equal(a.Omit, b.Omit) && a.managedOnly == b.managedOnly &&
		slices.EqualFunc(a.Objects, b.Objects, bytes.Equal)
}

func sameSpecs(a, b []FeedSpec) bool { return slices.EqualFunc(a, b, sameSpec) }

// stopUnwanted stops the feeds that are no longer in specs or are read with other
// requests, and waits for them. The latter leave their mark in marks if they show the same
// objects, because all versions of a kind show them with the same resourceVersions.
func (w *Watcher) stopUnwanted(specs []FeedSpec, marks map[vedette.Feed]vedette.Mark) {
	wanted := specsByFeed(specs)
	for name, f := range w.removeUnwanted(specs) {
		f.stopAndWait()
		delete(marks, name)
		if n, ok := wanted[name]; ok && sameObjects(*n, f.FeedSpec) {
			marks[name], _ = f.mark()
		}
	}
}

func specsByFeed(specs []FeedSpec) map[vedette.Feed]*FeedSpec {
	byFeed := make(map[vedette.Feed]*FeedSpec, len(specs))
	for i := range specs {
		byFeed[specs[i].Feed] = &specs[i]
	}
	return byFeed
}

// removeUnwanted removes and returns the feeds that are not in specs. The caller stops
// them without the lock, because a sink may call Reset meanwhile.
func (w *Watcher) removeUnwanted(specs []FeedSpec) map[vedette.Feed]*feed {
	w.mu.Lock()
	defer w.mu.Unlock()
	removed := map[vedette.Feed]*feed{}
	wanted := specsByFeed(specs)
	for name, f := range w.feeds {
		if n, ok := wanted[name]; !ok || !sameSpec(*n, f.FeedSpec) {
			removed[name] = f
			delete(w.feeds, name)
			w.denials.remove(name)
		}
	}
	return removed
}

// stopAndWait stops a feed and waits until it reports nothing more.
func (f *feed) stopAndWait() {
	f.stop()
	<-f.done
	f.w.verifier.remove(f)
}

// startMissing starts the feeds that do not run yet and wakes the others, because a
// request that was denied before may be allowed now.
func (w *Watcher) startMissing(ctx context.Context, specs []FeedSpec, marks map[vedette.Feed]vedette.Mark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range specs {
		if f := w.feeds[n.Feed]; f != nil {
			f.retryNow()
			continue
		}
		sink := w.sink
		if n.Kind == crdKind || n.Kind == apiServiceKind {
			sink = &rediscoverSink{w: w, Sink: w.sink}
		}
		w.feeds[n.Feed] = w.start(ctx, n, sink, marks[n.Feed])
		delete(marks, n.Feed)
	}
	w.hasFeeds = true
}

// retryNow ends a feed's pause.
func (f *feed) retryNow() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (w *Watcher) start(ctx context.Context, n FeedSpec, sink Sink, mark vedette.Mark) *feed {
	f := w.newFeed(n, sink, mark)
	w.verifier.add(f)
	ctx, f.stop = context.WithCancel(ctx)
	go f.run(ctx)
	return f
}

// stopAll stops all feeds and waits for them.
func (w *Watcher) stopAll() {
	w.fail(context.Canceled)
	for _, f := range w.removeUnwanted(nil) {
		f.stopAndWait()
	}
	for _, f := range w.triggerFeeds {
		f.stopAndWait()
	}
}

// syncTriggerFeeds keeps a metadata-only watch of CustomResourceDefinitions and
// APIServices, whose changes trigger discovery, unless a feed of the account reads them.
func (w *Watcher) syncTriggerFeeds(ctx context.Context, cat kube.Catalogue, specs []FeedSpec) {
	for _, r := range cat.Resources {
		if r.Kind != crdKind && r.Kind != apiServiceKind {
			continue
		}
		isCovered := slices.ContainsFunc(specs, func(n FeedSpec) bool { return n.Kind == r.Kind && n.Objects == nil })
		f := w.triggerFeeds[r.Kind]
		switch {
		case isCovered && f != nil:
			f.stopAndWait()
			delete(w.triggerFeeds, r.Kind)
		case !isCovered && f == nil:
			n := FeedSpec{Feed: vedette.Feed{Kind: r.Kind}, Resource: r, metadataOnly: true, isTrigger: true}
			w.triggerFeeds[r.Kind] = w.start(ctx, n, &rediscoverSink{w: w, Sink: discardSink{}}, "")
		}
	}
}

// rediscoverSink passes events on and requests discovery at each change and after each
// snapshot. What a snapshot contains may have come into being after the last discovery began,
// however early the snapshot itself did: an API server answers a list some time after it was
// asked. So only a discovery that begins after the End covers it.
type rediscoverSink struct {
	w *Watcher
	Sink
}

// Put requests discovery only after the sink has taken the change.
func (n *rediscoverSink) Put(ctx context.Context, e Event) error {
	err := n.Sink.Put(ctx, e)
	if e.Type == Upsert || e.Type == Delete || e.Type == End {
		n.w.requestRediscovery()
	}
	return err
}

type discardSink struct{}

// Put returns the context's error, since a feed that is stopped must end.
func (discardSink) Put(ctx context.Context, _ Event) error { return ctx.Err() }
