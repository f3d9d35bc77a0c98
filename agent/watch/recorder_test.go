package watch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch"
)

var secretFeed = vedette.Feed{Kind: vedette.Kind{Name: "Secret"}}

// recorder is a sink that keeps the resulting state of each feed.
type recorder struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each event
	feeds   map[vedette.Feed]*recordedFeed
	events  []string
	specs   []watch.FeedSpec
	unknown []string
	faults  []string
	account watch.Event // the last Status of the account as a whole
	problem string      // of the last declaration
}

// recordedFeed is the state of one feed according to its events.
type recordedFeed struct {
	objects   map[string]string // namespace/name to resourceVersion
	bodies    map[string]string
	next      map[string]string // of the snapshot under way; nil outside of one
	mark      vedette.Mark
	state     vedette.FeedState
	message   string
	snapshots int
	upserts   int
}

func newRecorder() *recorder {
	return &recorder{changed: make(chan struct{}), feeds: map[vedette.Feed]*recordedFeed{}}
}

func (r *recorder) addFault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// Put records an event and checks that it is allowed at this point.
func (r *recorder) Put(ctx context.Context, e watch.Event) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { close(r.changed); r.changed = make(chan struct{}) }()
	r.events = append(r.events, r.format(e))
	if e.Type == watch.Declare {
		r.declare(e)
		return nil
	}
	f := r.feeds[e.Feed]
	if e.Feed == (vedette.Feed{}) {
		r.account = e
		return nil
	}
	if f == nil {
		r.addFault("%s of %s, which was not declared", e.Type, e.Feed)
		return nil
	}
	r.apply(f, e)
	return nil
}

func (r *recorder) format(e watch.Event) string {
	line := fmt.Sprintf("%s %s", e.Type, e.Feed)
	if e.Type == watch.Declare {
		line = "declare"
		for _, w := range e.Feeds {
			line += fmt.Sprintf(" %s@%s", w.Feed, w.Resource.APIVersion())
		}
		if len(e.UnknownGroups) > 0 {
			line += fmt.Sprintf(", unknown %v", e.UnknownGroups)
		}
	}
	if e.Raw != nil {
		line += " " + string(e.Raw)
	}
	if e.Mark != "" {
		line += " @" + string(e.Mark)
	}
	if e.Type == watch.Status {
		line += fmt.Sprintf(" %s %s", e.State, e.Message)
	}
	return line
}

func (r *recorder) declare(e watch.Event) {
	r.specs, r.unknown, r.problem = e.Feeds, e.UnknownGroups, e.Problem
	old := r.feeds
	r.feeds = map[vedette.Feed]*recordedFeed{}
	for _, w := range e.Feeds {
		r.feeds[w.Feed] = old[w.Feed]
		if r.feeds[w.Feed] == nil {
			r.feeds[w.Feed] = &recordedFeed{objects: map[string]string{}, bodies: map[string]string{}}
		}
	}
}

func (r *recorder) apply(f *recordedFeed, e watch.Event) {
	switch e.Type {
	case watch.Begin:
		f.next = map[string]string{}
	case watch.Item:
		if f.next == nil {
			r.addFault("item of %s outside of a snapshot", e.Feed)
			return
		}
		r.object(f, f.next, e)
	case watch.End:
		f.objects, f.next, f.mark = f.next, nil, e.Mark
		f.snapshots++
	case watch.Upsert:
		r.object(f, f.objects, e)
		f.mark = e.Mark
		f.upserts++
	case watch.Delete:
		name, _ := r.identity(e)
		delete(f.objects, name)
		delete(f.next, name)
		if f.next == nil {
			f.mark = e.Mark
		}
	case watch.Bookmark:
		f.mark = e.Mark
	case watch.Status:
		f.state, f.message = e.State, e.Message
	}
}

func (r *recorder) object(f *recordedFeed, into map[string]string, e watch.Event) {
	name, version := r.identity(e)
	into[name] = version
	f.bodies[name] = string(e.Raw)
	if e.Type == watch.Upsert && version != string(e.Mark) {
		r.addFault("upsert of %s has mark %s and version %s", name, e.Mark, version)
	}
}

func (r *recorder) identity(e watch.Event) (name, version string) {
	var o struct {
		Kind, APIVersion string
		Metadata         struct{ Namespace, Name, ResourceVersion string }
	}
	if err := json.Unmarshal(e.Raw, &o); err != nil {
		r.addFault("%s of %s: %v: %s", e.Type, e.Feed, err, e.Raw)
	}
	if o.Kind != e.Kind.Name || o.APIVersion != e.Resource.APIVersion() {
		r.addFault("%s of %s: got %s %s", e.Type, e.Feed, o.APIVersion, o.Kind)
	}
	return o.Metadata.Namespace + "/" + o.Metadata.Name, o.Metadata.ResourceVersion
}

// await waits until a condition on the recorder holds.
func (r *recorder) await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		r.mu.Lock()
		ok, changed := condition(), r.changed
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			r.mu.Lock()
			defer r.mu.Unlock()
			last := r.events
			if len(last) > 40 {
				last = last[len(last)-40:]
			}
			for _, line := range last {
				t.Logf("%.300s", line)
			}
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

func (r *recorder) state(f vedette.Feed) vedette.FeedState {
	if r.feeds[f] == nil {
		return ""
	}
	return r.feeds[f].state
}

// has reports whether a feed contains an object.
func (r *recorder) has(f vedette.Feed, name string) bool {
	return r.feeds[f] != nil && r.feeds[f].objects[name] != ""
}

// check fails the test if an event was not allowed.
func (r *recorder) check(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, fault := range r.faults {
		t.Error(fault)
	}
}

// marks returns the mark of each feed.
func (r *recorder) marks() map[vedette.Feed]vedette.Mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	marks := map[vedette.Feed]vedette.Mark{}
	for name, f := range r.feeds {
		marks[name] = f.mark
	}
	return marks
}

// start runs a watcher until the test ends or stop is called. Stop waits for the watcher.
func start(t testing.TB, c *kube.Cluster, s watch.Selection, sink watch.Sink, cfg watch.Config, marks map[vedette.Feed]vedette.Mark) (w *watch.Watcher, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w = watch.NewWatcher(c, s, sink, cfg)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, marks) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("the watcher did not end within a minute")
		}
	})
	t.Cleanup(stop)
	return w, stop
}

func connect(t testing.TB, kubeconfig string) *kube.Cluster {
	t.Helper()
	c, err := kube.Connect(kube.Access{KubeconfigFile: kubeconfig}, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
