package watch_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/test/proxy"
)

// TestFullWindowDelaysProofs checks that a burst of events that does not fit into the window of its watch is waited for: over a slow
// link the API server holds most of it back, while it answers probes over the same connection. If this machine stands still for longer than
// an API server may, what follows from that burst does not count, and another one is sent.
func TestFullWindowDelaysProofs(t *testing.T) {
	const events = 100
	begin, happened := make(chan int), make(chan time.Time, 1)
	var probes counter
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/v1/namespaces/kube-system":
			probes.add()
			fmt.Fprint(w, `{"kind":"PartialObjectMetadata","metadata":{"name":"kube-system","uid":"u","resourceVersion":"1"}}`)
		case r.URL.Query().Has("watch"):
			_ = http.NewResponseController(w).Flush()
			for {
				var first int
				select {
				case first = <-begin:
				case <-r.Context().Done():
					return
				}
				happened <- time.Now()
				for i := first; i < first+events; i++ {
					fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"n","name":"m%d","uid":"u%d","resourceVersion":"%d"},`+
						`"data":{"a":"%s"}}}`+"\n", i, i, 10+i, strings.Repeat("x", 8<<10))
				}
				_ = http.NewResponseController(w).Flush()
			}
		case r.URL.Path == "/version":
			fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
		default:
			fmt.Fprint(w, emptyList)
		}
	})
	r := newRecorder()
	cfg := watch.Config{Log: slog.New(slog.DiscardHandler), ProofInterval: func() time.Duration { return 20 * time.Millisecond }}
	link := proxy.New(t, server.Listener.Addr().String())
	link.AddLatency(25 * time.Millisecond)
	cluster := kubetest.ConnectWith(t, kubetest.Kubeconfig("https://"+link.Address(), kubetest.CertPEM(server)), kube.Options{})
	if _, _, err := cluster.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, _ := start(t, cluster, watch.Selection{Kinds: []string{"configmap"}}, r, cfg, nil)
	r.await(t, "the feed to be live", func() bool { return r.state(configMapFeed) == vedette.FeedLive })
	live := time.Now()
	awaitProof := func(at time.Time) {
		t.Helper()
		for !w.Freshness(time.Now()).Live.After(at) && !t.Failed() {
			probes.awaitMore(t, 1)
		}
	}
	awaitProof(live)
	count := func() int { return len(r.feeds[configMapFeed].objects) }
	longest := measurePauses(t)
	for sent := events; sent <= 20*events; sent += events {
		longest.Store(0)
		begin <- sent - events
		awaitProof(<-happened)
		r.mu.Lock()
		got := count()
		r.mu.Unlock()
		if got >= sent {
			return
		}
		if pause := time.Duration(longest.Load()); pause < maxPause {
			t.Fatalf("the feed is called complete with %d of %d events that had happened, and this machine stood still for at most %v", got, sent, pause)
		}
		r.await(t, "all events", func() bool { return count() >= sent })
	}
	t.Error("the feed was never called complete with all events that had happened")
}

// maxPause is how long this machine may stand still in a test of what an API server has held back: half as long as that may take.
const maxPause = 25 * time.Millisecond

// measurePauses keeps the longest time for which a goroutine did not run that wants to run all the time.
func measurePauses(t *testing.T) *atomic.Int64 {
	var longest atomic.Int64
	go func() {
		for last := time.Now(); t.Context().Err() == nil; last = time.Now() {
			<-time.After(time.Millisecond)
			longest.Store(max(longest.Load(), int64(time.Since(last))))
		}
	}()
	return &longest
}
