package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/fleet"
	"github.com/vedette-io/vedette/test/fleet/sample"
)

// world is a cluster whose objects a test changes.
type world interface {
	access() kube.Access
	put(t *testing.T, kind vedette.Kind, i int)
	delete(t *testing.T, kind vedette.Kind, i int)
	expire(t *testing.T) // all earlier changes, so that no watch can resume from them
}

const seed = 11

// simulated is a cluster of a fleet.
type simulated struct{ f *fleet.Fleet }

func newSimulated(t *testing.T, objects map[vedette.Kind]int) simulated {
	t.Helper()
	f, err := fleet.Start(fleet.Config{Objects: objects, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return simulated{f}
}

func (w simulated) access() kube.Access {
	return kube.Access{KubeconfigContents: w.f.Kubeconfig(0)}
}
func (w simulated) put(_ *testing.T, k vedette.Kind, i int)    { w.f.Cluster(0).Put(k, i) }
func (w simulated) delete(_ *testing.T, k vedette.Kind, i int) { w.f.Cluster(0).Delete(k, i) }

func (w simulated) expire(*testing.T) { w.f.Cluster(0).Expire() }

// realCluster is a control plane with the same objects as the simulated cluster.
type realCluster struct {
	plane  *controlplane.Plane
	sample *sample.Cluster
	change int
}

func newReal(t *testing.T, objects map[vedette.Kind]int) *realCluster {
	t.Helper()
	w := &realCluster{plane: controlplane.New(t, controlplane.Options{}), sample: sample.New(seed << 20)}
	for i := 2; i < sample.Namespaces; i++ {
		w.put(t, vedette.Kind{Name: "Namespace"}, i)
	}
	for kind, n := range objects {
		for i := range n {
			w.put(t, kind, i)
		}
	}
	return w
}

func (w *realCluster) access() kube.Access { return kube.Access{KubeconfigFile: w.plane.Kubeconfig()} }

func (w *realCluster) list(kind vedette.Kind, i int) string {
	r, _ := sample.Resource(kind)
	path := "/apis/" + r.APIVersion()
	if kind.Group == "" {
		path = "/api/v1"
	}
	if r.Namespaced {
		path += "/namespaces/" + w.sample.Key(kind, i).Namespace
	}
	return path + "/" + r.Plural
}

func (w *realCluster) put(t *testing.T, kind vedette.Kind, i int) {
	t.Helper()
	list := w.list(kind, i)
	w.change++
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"changed-at":"%d"}}}`, w.change)
	err := w.plane.Patch(t.Context(), list+"/"+w.sample.Key(kind, i).Name, patch)
	if status, ok := errors.AsType[*controlplane.StatusError](err); ok && status.Code == http.StatusNotFound {
		var body []byte
		body, _, err = w.sample.Creatable(kind, i)
		if err == nil {
			err = w.plane.Create(t.Context(), list, body)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *realCluster) delete(t *testing.T, kind vedette.Kind, i int) {
	t.Helper()
	if err := w.plane.Delete(t.Context(), w.list(kind, i)+"/"+w.sample.Key(kind, i).Name); err != nil {
		t.Fatal(err)
	}
}

func (w *realCluster) expire(t *testing.T) {
	t.Helper()
	w.plane.KillAPIServer()
	if err := w.plane.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// eventLog is a sink that records the events of each feed, without what differs between two
// clusters with the same objects.
type eventLog struct {
	mu        sync.Mutex
	changed   chan struct{} // closed and replaced at each event
	feeds     map[vedette.Feed][]string
	items     map[vedette.Feed][]string // of snapshots in progress
	marks     map[vedette.Feed]vedette.Mark
	isStopped bool // a watcher is being stopped
}

func newEventLog() *eventLog {
	return &eventLog{changed: make(chan struct{}), feeds: map[vedette.Feed][]string{},
		items: map[vedette.Feed][]string{}, marks: map[vedette.Feed]vedette.Mark{}}
}

// setStopped says whether what a watcher says is left out, because it is being stopped.
func (s *eventLog) setStopped(isStopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isStopped = isStopped
}

func (s *eventLog) Put(ctx context.Context, e watch.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isStopped || e.Raw != nil && strings.Contains(identity(e.Raw), " kube-system/") {
		return ctx.Err() // said while its connections end; or created by a real API server and not simulated
	}
	switch e.Type {
	case watch.Declare, watch.Bookmark: // bookmarks have no fixed time
	case watch.Begin:
		s.items[e.Feed] = nil
	case watch.Item:
		s.items[e.Feed] = append(s.items[e.Feed], identity(e.Raw))
	case watch.End:
		slices.Sort(s.items[e.Feed])
		s.append(e, "snapshot of "+strings.Join(s.items[e.Feed], ", "))
	case watch.Status:
		s.append(e, "is "+string(e.State))
	default:
		s.append(e, e.Type.String()+" "+identity(e.Raw))
	}
	if e.Mark != "" {
		s.marks[e.Feed] = e.Mark
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return ctx.Err()
}

func (s *eventLog) append(e watch.Event, line string) {
	s.feeds[e.Feed] = append(s.feeds[e.Feed], line)
}

// identity returns an object's identity and which members it has. A Secret must have only metadata.
func identity(raw []byte) string {
	var o struct {
		Kind, APIVersion string
		Metadata         struct{ Namespace, Name string }
		Spec, Data       json.RawMessage
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %s %s/%s (spec %v, data %v)", o.APIVersion, o.Kind, o.Metadata.Namespace, o.Metadata.Name, o.Spec != nil, o.Data != nil)
}

// waitFor waits until a condition on the log is true.
func (s *eventLog) waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		s.mu.Lock()
		ok, changed := condition(), s.changed
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			s.mu.Lock()
			defer s.mu.Unlock()
			t.Fatalf("timeout waiting for %s, got %q", what, s.feeds)
		}
	}
}

// waitLive waits until feeds are live, after a number of changes.
func (s *eventLog) waitLive(t *testing.T, changes map[vedette.Feed]int) {
	t.Helper()
	s.waitFor(t, fmt.Sprintf("feeds to be live after %v", changes), func() bool {
		for feed, n := range changes {
			if !slices.Contains(s.feeds[feed], "is live") || s.changesOf(feed) < n {
				return false
			}
		}
		return true
	})
}

func (s *eventLog) changesOf(feed vedette.Feed) (n int) {
	for _, line := range s.feeds[feed] {
		if strings.HasPrefix(line, "upsert") || strings.HasPrefix(line, "delete") {
			n++
		}
	}
	return n
}

// run watches a world until stop is called.
func run(t *testing.T, w world, selection watch.Selection, s *eventLog, streamed bool, marks map[vedette.Feed]vedette.Mark) (stop func()) {
	t.Helper()
	c, err := kube.Connect(w.access(), kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	watcher := watch.NewWatcher(c, selection, s, watch.Config{StreamSnapshots: streamed, Log: slog.New(slog.DiscardHandler)})
	s.setStopped(false)
	go func() { done <- watcher.Run(ctx, marks) }()
	return func() {
		s.setStopped(true)
		cancel()
		<-done
		c.Close()
	}
}
