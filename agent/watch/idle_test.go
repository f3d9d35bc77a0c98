package watch_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
)

// idleTestConfig returns a configuration in which a watch counts as lost after a second.
func idleTestConfig() watch.Config {
	return watch.Config{IdleTimeout: time.Second, MinBackoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
}

const changeOfA = `{"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"n","name":"a","resourceVersion":"7"}}}` + "\n"

// TestIdleWatchIsDetected checks that a silent watch is noticed although the API server
// responds to other requests. Afterwards the feed either knows what it missed, or is not
// live.
func TestIdleWatchIsDetected(t *testing.T) {
	for name, tt := range map[string]struct {
		second        func(w http.ResponseWriter, r *http.Request) // the second watch and those after it
		state         vedette.FeedState
		wantChange    bool // the feed must know the change that the first watch missed
		messagePrefix string
	}{
		"the way was lost and is back": {func(w http.ResponseWriter, r *http.Request) { kubetest.Hang(w, r, changeOfA) }, vedette.FeedLive, true, ""},
		"a proxy that holds answers back to their end": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, changeOfA)
		}, vedette.FeedLive, true, ""},
		"nothing happened, and there are no bookmarks": {func(w http.ResponseWriter, r *http.Request) {
			select { // as long as timeoutSeconds would say, were it not a number of whole seconds
			case <-time.After(130 * time.Millisecond):
			case <-r.Context().Done():
			}
		}, vedette.FeedLive, false, ""},
		"a proxy that loses all": {func(w http.ResponseWriter, r *http.Request) { kubetest.Hang(w, r, "") }, vedette.FeedFailing, false, "the watch receives nothing although the API server responds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			watches := 0
			server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
				if !r.URL.Query().Has("watch") {
					fmt.Fprint(w, emptyList)
					return
				}
				mu.Lock()
				watches++
				n := watches
				mu.Unlock()
				if n == 1 {
					kubetest.Hang(w, r, "")
					return
				}
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				tt.second(w, r)
			})
			r := newRecorder()
			start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap"}}, r, idleTestConfig(), nil)
			r.await(t, "the silence to be noticed", func() bool {
				mu.Lock()
				defer mu.Unlock()
				f := r.feeds[configMapFeed]
				return watches > 2 && f != nil && f.state == tt.state && r.has(configMapFeed, "n/a") == tt.wantChange && strings.HasPrefix(f.message, tt.messagePrefix)
			})
		})
	}
}

// TestBookmarksKeepWatchAlive checks that a watch with bookmarks is not ended.
func TestBookmarksKeepWatchAlive(t *testing.T) {
	watches := make(chan struct{}, 100)
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("watch") {
			fmt.Fprint(w, emptyList)
			return
		}
		watches <- struct{}{}
		for n := 6; r.Context().Err() == nil; n++ {
			fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}}`+"\n", n)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(10 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
	})
	r := newRecorder()
	cfg := idleTestConfig()
	cfg.IdleTimeout = 10 * time.Second
	start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap"}}, r, cfg, nil)
	r.await(t, "bookmarks", func() bool {
		f := r.feeds[configMapFeed]
		return f != nil && len(f.mark) >= 2 && f.mark >= "30" // which may be past when it is looked at
	})
	if len(watches) != 1 {
		t.Errorf("got %d watches, want 1", len(watches))
	}
}
