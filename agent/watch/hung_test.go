package watch_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/agent/watch/queue"
)

const emptyList = `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`

// serveEmptyCluster serves empty lists and silent watches.
func serveEmptyCluster(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("watch") {
		kubetest.Hang(w, r, "")
		return
	}
	fmt.Fprint(w, emptyList)
}

// TestHungClustersDoNotBlockOthers lets two clusters, whose lists hang after the header, take
// all permits. A third, healthy cluster must still become live.
func TestHungClustersDoNotBlockOthers(t *testing.T) {
	cfg := watch.Config{Limiter: watch.NewLimiter(queue.Budget{Fast: 4}), PagePermitTimeout: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	both := watch.Selection{Kinds: []string{"configmap", "secret"}}
	for range 2 {
		reached := make(chan struct{}, 2)
		hung := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
			reached <- struct{}{}
			kubetest.Hang(w, r, `{"kind":"List",`)
		})
		start(t, kubetest.Connect(t, hung, kube.Options{ProgressTimeout: time.Hour}), both, newRecorder(), cfg, nil)
		<-reached
		<-reached
	}
	r := newRecorder()
	start(t, kubetest.Connect(t, newAPIServer(t, serveEmptyCluster), kube.Options{}), both, r, cfg, nil)
	r.await(t, "the healthy cluster to be live", func() bool {
		return r.state(configMapFeed) == vedette.FeedLive && r.state(secretFeed) == vedette.FeedLive
	})
}

// TestSilentClusterYieldsBudgetOfOne lets a cluster answer no list. With a budget of one, a healthy cluster must
// become live although no request of the silent one ends.
func TestSilentClusterYieldsBudgetOfOne(t *testing.T) {
	cfg := watch.Config{Limiter: watch.NewLimiter(queue.Budget{Total: 1}), PagePermitTimeout: 2 * time.Second, Log: slog.New(slog.DiscardHandler)}
	asked := make(chan struct{}, 100)
	silent := newAPIServer(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	kinds := watch.Selection{Kinds: []string{"configmap", "secret"}}
	start(t, kubetest.Connect(t, silent, kube.Options{HeaderTimeout: time.Hour}), kinds, newRecorder(), cfg, nil)
	<-asked
	healthy := newRecorder()
	start(t, kubetest.Connect(t, newAPIServer(t, serveEmptyCluster), kube.Options{}), kinds, healthy, cfg, nil)
	healthy.await(t, "the healthy cluster to be live", func() bool {
		return healthy.state(configMapFeed) == vedette.FeedLive && healthy.state(secretFeed) == vedette.FeedLive
	})
	<-asked // again, after the others
}

// TestTrickleDoesNotUseUpBudgetOfOne lets a cluster with several kinds send its lists byte by byte. With a
// budget of one, a healthy cluster must become live after one of its requests.
func TestTrickleDoesNotUseUpBudgetOfOne(t *testing.T) {
	cfg := watch.Config{Limiter: watch.NewLimiter(queue.Budget{Total: 1}), PagePermitTimeout: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	begun := make(chan struct{}, 1)
	trickling := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case begun <- struct{}{}:
		default:
		}
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for text := `{"kind":"List","metadata":{"resourceVersion":"`; r.Context().Err() == nil; text = "5" {
			fmt.Fprint(w, text)
			_ = http.NewResponseController(w).Flush()
			<-ticker.C
		}
	})
	kinds := watch.Selection{Kinds: []string{"configmap", "secret"}}
	r := newRecorder()
	start(t, kubetest.Connect(t, trickling, kube.Options{ProgressTimeout: 100 * time.Millisecond}), kinds, r, cfg, nil)
	<-begun
	healthy := newRecorder()
	start(t, kubetest.Connect(t, newAPIServer(t, serveEmptyCluster), kube.Options{}), kinds, healthy, cfg, nil)
	healthy.await(t, "the healthy cluster to be live", func() bool {
		return healthy.state(configMapFeed) == vedette.FeedLive && healthy.state(secretFeed) == vedette.FeedLive
	})
	r.await(t, "the reason", func() bool { return strings.Contains(r.account.Message, "almost no data arrived") })
}

// TestHungClusterReportsReason checks that feeds and account report why an API server that
// stops in the middle of lists fails, and that both recover with it.
func TestHungClusterReportsReason(t *testing.T) {
	healed := make(chan struct{})
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-healed:
			serveEmptyCluster(w, r)
		default:
			kubetest.Hang(w, r, `{"kind":"List",`)
		}
	})
	r := newRecorder()
	cfg := watch.Config{MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	c := kubetest.Connect(t, server, kube.Options{ProgressTimeout: 200 * time.Millisecond})
	start(t, c, watch.Selection{Kinds: []string{"configmap", "secret"}}, r, cfg, nil)
	const reason = "did not respond in time: check firewalls and proxies on the way (the response stopped in the middle: almost no data arrived for 200ms)"
	r.await(t, "feeds and account to report the reason", func() bool {
		return strings.HasSuffix(r.account.Message, reason) && r.state(configMapFeed) == vedette.FeedFailing &&
			strings.HasSuffix(r.feeds[configMapFeed].message, reason) && strings.HasSuffix(r.feeds[secretFeed].message, reason)
	})
	close(healed)
	r.await(t, "feeds and account to recover", func() bool {
		return r.state(configMapFeed) == vedette.FeedLive && r.state(secretFeed) == vedette.FeedLive && r.account.Message == ""
	})
}
