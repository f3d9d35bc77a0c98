//go:build linux

package watch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/agent/watch"
)

// TestRestoresThatDoNotEnd checks an API server, for example one of several aggregated ones that count on their
// own, whose latest version is always older than that of its lists. Reading all feeds anew does not help, so it is
// tried a few times only.
func TestRestoresThatDoNotEnd(t *testing.T) {
	var lists, probes atomic.Int64
	probed := make(chan struct{})
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Has("watch"):
			kubetest.Hang(w, r, "")
		case q.Get("limit") == "1":
			if probes.Add(1) == 12 {
				close(probed)
			}
			fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		default:
			lists.Add(1)
			fmt.Fprint(w, emptyList)
		}
	})
	r := newRecorder()
	cfg := verifyConfig(&recorderComparer{r: r, reports: map[vedette.Feed][]watch.VerifyReport{}})
	cfg.VerifyInterval, cfg.IdleTimeout = 50*time.Millisecond, time.Minute
	start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap"}}, r, cfg, nil)
	<-probed
	if n := lists.Load(); n > 6 {
		t.Errorf("got %d lists in 12 verifications, want 6 at most: one, three because of restores, and what just begins", n)
	}
}

// blockedReports is a comparer whose first report of a feed waits.
type blockedReports struct {
	*recorderComparer
	feed          vedette.Feed
	block         sync.Once
	begun, finish chan struct{}
}

// Report implements watch.Comparer.
func (c *blockedReports) Report(ctx context.Context, feed vedette.Feed, report watch.VerifyReport) error {
	if feed == c.feed {
		c.block.Do(func() { close(c.begun); <-c.finish })
	}
	return c.recorderComparer.Report(ctx, feed, report)
}

// newRestorableServer returns an API server of an empty cluster at version 5, and the version.
func newRestorableServer(t *testing.T) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	version := &atomic.Int64{}
	version.Store(5)
	return newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			kubetest.Hang(w, r, "")
			return
		}
		fmt.Fprintf(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[]}`, version.Load())
	}), version
}

// TestRestoreDuringVerification checks that a feed whose verification ends while another feed notices a restore
// reports that it was read anew because of it.
func TestRestoreDuringVerification(t *testing.T) {
	server, version := newRestorableServer(t)
	r := newRecorder()
	c := &blockedReports{recorderComparer: &recorderComparer{r: r, reports: map[vedette.Feed][]watch.VerifyReport{}}, feed: configMapFeed,
		begun: make(chan struct{}), finish: make(chan struct{})}
	cfg := verifyConfig(c.recorderComparer)
	cfg.Comparer, cfg.VerifyInterval, cfg.IdleTimeout = c, 200*time.Millisecond, time.Minute
	start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap", "secret"}}, r, cfg, nil)
	<-c.begun
	version.Store(3)
	r.await(t, "the feed to be read anew", func() bool { return r.feeds[configMapFeed].snapshots == 2 })
	close(c.finish)
	r.await(t, "the report of the restore", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.ContainsFunc(c.reports[configMapFeed], func(r watch.VerifyReport) bool { return r.Restored })
	})
}

// sinkOfBegins takes the beginning of a snapshot that replaces what is stored only when it may.
type sinkOfBegins struct {
	watch.Sink
	begun, finish chan struct{}
}

// Put implements watch.Sink.
func (s *sinkOfBegins) Put(ctx context.Context, e watch.Event) error {
	if e.Type == watch.Begin && e.Anew {
		s.begun <- struct{}{}
		<-s.finish
	}
	return s.Sink.Put(ctx, e)
}

// TestOutcomesWaitForTheBeginning checks that what an operation finds out while a feed begins to be read anew is held back until the server
// has the beginning, and that nothing else is.
func TestOutcomesWaitForTheBeginning(t *testing.T) {
	server, version := newRestorableServer(t)
	r := newRecorder()
	sink := &sinkOfBegins{r, make(chan struct{}), make(chan struct{})}
	cfg := verifyConfig(&recorderComparer{r: r, reports: map[vedette.Feed][]watch.VerifyReport{}})
	cfg.VerifyInterval, cfg.IdleTimeout = 200*time.Millisecond, time.Minute
	w, _ := start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap"}}, sink, cfg, nil)
	configMaps := map[vedette.Kind]bool{configMapFeed.Kind: true}
	r.await(t, "the first snapshot", func() bool { f := r.feeds[configMapFeed]; return f != nil && f.snapshots == 1 })
	w.AwaitBegin(t.Context(), configMaps) // returns: it is not read anew
	version.Store(3)
	<-sink.begun
	w.AwaitBegin(t.Context(), map[vedette.Kind]bool{{Name: "Secret"}: true})
	ended, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	w.AwaitBegin(ended, configMaps)
	if ended.Err() == nil {
		t.Error("an outcome is not held back while the server does not know of the snapshot")
	}
	waited := make(chan struct{})
	go func() {
		w.AwaitBegin(t.Context(), configMaps)
		close(waited)
	}()
	select {
	case <-waited:
		t.Error("an outcome is not held back until the server knows of the snapshot")
	case <-time.After(50 * time.Millisecond):
	}
	close(sink.finish)
	<-waited
}
