package watch_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/agent/watch/queue"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
)

// TestStalledLargeObjectsDoNotBlockOtherClusters lets clusters send the beginning of a
// three-megabyte object and then one byte now and then, so that they are not silent. They
// take all permits for large objects. The large object of a healthy cluster must still be
// read.
func TestStalledLargeObjectsDoNotBlockOtherClusters(t *testing.T) {
	const head = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"n","name":"a","resourceVersion":"6"},"data":{"x":"`
	largeValue := strings.Repeat("x", 3<<20)
	cluster := func(limit time.Duration, finish func(http.ResponseWriter, *http.Request)) *recorder {
		server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
			if !r.URL.Query().Has("watch") {
				fmt.Fprint(w, emptyList)
				return
			}
			fmt.Fprint(w, `{"type":"MODIFIED","object":`+head+largeValue)
			finish(w, r)
		})
		r := newRecorder()
		cfg := watch.Config{Limiter: sharedLimiter, LargeObjectTimeout: limit, MinBackoff: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
		start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap"}}, r, cfg, nil)
		return r
	}
	for range 4 {
		r := cluster(50*time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				fmt.Fprint(w, "x")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(5 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
		})
		r.await(t, "a large object to fail", func() bool {
			f := r.feeds[configMapFeed]
			return f != nil && strings.Contains(f.message, "a large object did not end after 50ms")
		})
	}
	r := cluster(time.Minute, func(w http.ResponseWriter, r *http.Request) { kubetest.Hang(w, r, `"}}}`+"\n") })
	r.await(t, "the large object of the healthy cluster", func() bool { return r.has(configMapFeed, "n/a") })
}

var sharedLimiter = watch.NewLimiter(queue.Budget{})

// TestSlowSinkDoesNotTimeOutLargeObjects checks that a page with large objects succeeds
// however slow the sink is, because a slow connection to the server is not a fault of the
// API server. No other feed waits for the permits meanwhile.
func TestSlowSinkDoesNotTimeOutLargeObjects(t *testing.T) {
	const objects = 12
	largeValue := strings.Repeat("x", 1500<<10)
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			kubetest.Hang(w, r, "")
			return
		}
		fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[`)
		for i := range objects {
			fmt.Fprintf(w, `{"metadata":{"namespace":"n","name":"a%d","resourceVersion":"4"},"data":{"x":"%s"}},`, i, largeValue[i%2*900<<10:])
		}
		fmt.Fprint(w, `{"metadata":{"namespace":"n","name":"last","resourceVersion":"4"}}]}`)
	})
	shared := watch.NewLimiter(queue.Budget{})
	sink := &slowSink{recorder: newRecorder(), pause: 450 * time.Millisecond}
	cfg := watch.Config{Limiter: shared, LargeObjectTimeout: 4 * time.Second, MinBackoff: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap"}}, sink, cfg, nil)
	sink.await(t, "the last large object", func() bool {
		f := sink.feeds[configMapFeed]
		return f != nil && sink.has(configMapFeed, "n/last")
	})
}

// slowSink waits before each object.
type slowSink struct {
	*recorder
	pause time.Duration
}

func (s *slowSink) Put(ctx context.Context, e watch.Event) error {
	if e.Type == watch.Item {
		time.Sleep(s.pause)
	}
	return s.recorder.Put(ctx, e)
}
