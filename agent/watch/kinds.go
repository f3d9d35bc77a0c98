package watch

import (
	"bytes"
	"context"
	"slices"

	"github.com/vedette-io/vedette"
)

// keepUnknown keeps the feeds of groups of which nothing could be learned: that
// an aggregated API server is down says nothing about its objects.
func (w *Watcher) keepUnknown(wanted []Wanted, unknown []string) []Wanted {
	have := map[vedette.Feed]int{}
	for i, n := range wanted {
		have[n.Feed] = i
	}
	for _, old := range w.declared {
		if !slices.Contains(unknown, old.Kind.Group) {
			continue
		}
		if i, ok := have[old.Feed]; ok {
			wanted[i] = old // nor may it change the version
		} else {
			wanted = append(wanted, old)
		}
	}
	return wanted
}

// sameWanted reports whether two feeds are read in the same way.
func sameWanted(a, b Wanted) bool {
	return a.Feed == b.Feed && a.Resource.Version == b.Resource.Version && a.Resource.Plural == b.Resource.Plural &&
		a.Resource.Namespaced == b.Resource.Namespaced && slices.Equal(a.Omit, b.Omit) && a.managedOnly == b.managedOnly &&
		slices.EqualFunc(a.Objects, b.Objects, bytes.Equal)
}

func sameFeeds(a, b []Wanted) bool { return slices.EqualFunc(a, b, sameWanted) }

// stopOthers stops, and waits for, the feeds that are no longer wanted or are
// to be read in another way. The latter leave their mark: versions of a kind
// show the same objects under the same resourceVersions.
func (w *Watcher) stopOthers(wanted []Wanted, marks map[vedette.Feed]vedette.Mark) {
	for name, f := range w.take(wanted) {
		f.halt()
		if slices.ContainsFunc(wanted, func(n Wanted) bool { return n.Feed == name }) {
			marks[name] = f.mark
		}
	}
}

// take removes the feeds that are not among those wanted. The lock is not held
// while they end, because a sink may call Reset meanwhile.
func (w *Watcher) take(wanted []Wanted) map[vedette.Feed]*feed {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := map[vedette.Feed]*feed{}
	for name, f := range w.feeds {
		if !slices.ContainsFunc(wanted, func(n Wanted) bool { return sameWanted(n, f.Wanted) }) {
			taken[name] = f
			delete(w.feeds, name)
		}
	}
	return taken
}

// halt stops a feed and waits until nothing more comes of it.
func (f *feed) halt() {
	f.stop()
	<-f.done
}

// startMissing starts the feeds that do not run yet, and wakes the others:
// what was refused may be allowed now.
func (w *Watcher) startMissing(ctx context.Context, wanted []Wanted, marks map[vedette.Feed]vedette.Mark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range wanted {
		if f := w.feeds[n.Feed]; f != nil {
			f.rouse()
			continue
		}
		sink := w.sink
		if n.Kind == crdKind || n.Kind == apiServiceKind {
			sink = &nudging{w: w, Sink: w.sink}
		}
		w.feeds[n.Feed] = w.start(ctx, n, sink, marks[n.Feed])
		delete(marks, n.Feed)
	}
}

// rouse ends a feed's pause.
func (f *feed) rouse() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (w *Watcher) start(ctx context.Context, n Wanted, sink Sink, mark vedette.Mark) *feed {
	f := w.newFeed(n, sink, mark)
	ctx, f.stop = context.WithCancel(ctx)
	go f.run(ctx)
	return f
}

// stopAll ends all feeds. They are told together and then waited for.
func (w *Watcher) stopAll() {
	w.fail(context.Canceled)
	for _, f := range w.take(nil) {
		f.halt()
	}
	for _, f := range w.signals {
		f.halt()
	}
}

// signal keeps a metadata-only watch on what makes custom kinds come and go,
// unless a feed of the account sees it anyway.
func (w *Watcher) signal(ctx context.Context, cat Catalogue, wanted []Wanted) {
	for _, r := range cat.Resources {
		if r.Kind != crdKind && r.Kind != apiServiceKind {
			continue
		}
		seen := slices.ContainsFunc(wanted, func(n Wanted) bool { return n.Kind == r.Kind && n.Objects == nil })
		f := w.signals[r.Kind]
		switch {
		case seen && f != nil:
			f.halt()
			delete(w.signals, r.Kind)
		case !seen && f == nil:
			n := Wanted{Feed: vedette.Feed{Kind: r.Kind}, Resource: r, metadataOnly: true}
			w.signals[r.Kind] = w.start(ctx, n, &nudging{w: w, Sink: deaf{}}, "")
		}
	}
}

// nudging passes events on and asks for discovery at each change, and after
// each snapshot but the first, which may stand for changes.
type nudging struct {
	w *Watcher
	Sink
	known bool
}

// Put nudges only once the sink has taken the change.
func (n *nudging) Put(ctx context.Context, e Event) error {
	err := n.Sink.Put(ctx, e)
	if e.Type == Upsert || e.Type == Delete || e.Type == End && n.known {
		n.w.nudged()
	}
	n.known = n.known || e.Type == End
	return err
}

// deaf takes events and does nothing with them.
type deaf struct{}

// Put returns the context's error, since a feed that is stopped must end.
func (deaf) Put(ctx context.Context, _ Event) error { return ctx.Err() }
