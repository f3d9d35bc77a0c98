package watch_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/agent/watch"
)

// TestUnknownFeedsAreNotFresh checks that nothing is known of how fresh an account is before it is known which feeds it has: the database may
// have what it had an hour ago.
func TestUnknownFeedsAreNotFresh(t *testing.T) {
	var discoveries counter
	var works atomic.Bool
	discovered := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/v1/namespaces/kube-system":
			fmt.Fprint(w, `{"metadata":{"name":"kube-system","uid":"u"}}`)
		case r.URL.Query().Has("watch"):
			kubetest.Hang(w, r, "")
		default:
			fmt.Fprint(w, emptyList)
		}
	})
	server := kubetest.NewServer(t, func(w http.ResponseWriter, r *http.Request) {
		if (r.URL.Path == "/api" || r.URL.Path == "/apis") && !works.Load() {
			discoveries.add()
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		discovered.Config.Handler.ServeHTTP(w, r)
	})
	r := newRecorder()
	cfg := watch.Config{Log: slog.New(slog.DiscardHandler), MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond,
		ProofInterval: func() time.Duration { return 20 * time.Millisecond }}
	w, _ := start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap"}}, r, cfg,
		map[vedette.Feed]vedette.Mark{configMapFeed: "5"})
	discoveries.awaitMore(t, 5)
	if got := w.Freshness(time.Now()); !got.Live.IsZero() || !got.All.IsZero() {
		t.Errorf("without discovery: got live %v and all %v, want that both are unknown", got.Live, got.All)
	}
	works.Store(true)
	r.await(t, "the feed to be live", func() bool { return r.state(configMapFeed) == vedette.FeedLive })
	live, deadline := time.Now(), time.After(time.Minute)
	for !w.Freshness(time.Now()).All.After(live) {
		select {
		case <-deadline:
			t.Fatal("the account does not become fresh")
		case <-time.After(time.Millisecond):
		}
	}
}
