package watch_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch"
)

const emptyList = `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`

// writeAndHang sends what is given and then nothing, for as long as the request lasts.
func writeAndHang(w http.ResponseWriter, r *http.Request, body string) {
	fmt.Fprint(w, body)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// serveEmptyCluster is an API server without objects.
func serveEmptyCluster(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("watch") {
		writeAndHang(w, r, "")
		return
	}
	fmt.Fprint(w, emptyList)
}

// TestHungClustersDoNotBlockOthers has two clusters whose lists stop after the head take
// all turns there are, for ever, and a third one that is well.
func TestHungClustersDoNotBlockOthers(t *testing.T) {
	cfg := watch.Config{Limiter: watch.NewLimiter(4), PagePermitTimeout: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	both := watch.Selection{Kinds: []string{"configmap", "secret"}}
	for range 2 {
		reached := make(chan struct{}, 2)
		hung := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
			reached <- struct{}{}
			writeAndHang(w, r, `{"kind":"List",`)
		})
		start(t, connectWith(t, hung.URL, certOf(hung), watch.Options{ProgressTimeout: time.Hour}), both, newRecorder(), cfg, nil)
		<-reached
		<-reached
	}
	r := newRecorder()
	start(t, connectTo(t, newAPIServer(t, serveEmptyCluster)), both, r, cfg, nil)
	r.await(t, "the healthy cluster to be live", func() bool {
		return r.state(configMapFeed) == vedette.FeedLive && r.state(secretFeed) == vedette.FeedLive
	})
}

// TestHungClusterReportsReason holds that feeds and account say what an API server does
// that stops in the middle of lists, and that both are well once it is.
func TestHungClusterReportsReason(t *testing.T) {
	healed := make(chan struct{})
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-healed:
			serveEmptyCluster(w, r)
		default:
			writeAndHang(w, r, `{"kind":"List",`)
		}
	})
	r := newRecorder()
	cfg := watch.Config{MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	c := connectWith(t, server.URL, certOf(server), watch.Options{ProgressTimeout: 200 * time.Millisecond})
	start(t, c, watch.Selection{Kinds: []string{"configmap", "secret"}}, r, cfg, nil)
	const reason = "does not answer in time: check firewalls and proxies on the way (the answer stopped in the middle: nothing, or next to nothing, came for 200ms)"
	r.await(t, "feeds and account to say why", func() bool {
		return strings.HasSuffix(r.account.Message, reason) && r.state(configMapFeed) == vedette.FeedFailing &&
			strings.HasSuffix(r.feeds[configMapFeed].message, reason) && strings.HasSuffix(r.feeds[secretFeed].message, reason)
	})
	close(healed)
	r.await(t, "all to be well", func() bool {
		return r.state(configMapFeed) == vedette.FeedLive && r.state(secretFeed) == vedette.FeedLive && r.account.Message == ""
	})
}

// TestIdentifyAndDiscoverTimeOut lets each request of identification and discovery
// stop at its head, in its body, or in the body of an error, and never end.
func TestIdentifyAndDiscoverTimeOut(t *testing.T) {
	answers := map[string]string{
		"/version": `{"gitVersion":"v1.36.3"}`, "/api/v1/namespaces/kube-system": `{"metadata":{"uid":"u"}}`, "/api/v1/namespaces": emptyList,
		"/api": `{"kind":"APIVersions","versions":["v1"]}`, "/apis": `{"kind":"APIGroupList","groups":[{"name":"g","preferredVersion":{"version":"v1"}}]}`,
	}
	failures := map[string]func(http.ResponseWriter, *http.Request){
		"no head":     func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"half a body": func(w http.ResponseWriter, r *http.Request) { writeAndHang(w, r, `{"kind":"APIVersions",`) },
		"half an error": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			writeAndHang(w, r, `{"kind":"Status",`)
		},
		"no end of bytes": func(w http.ResponseWriter, r *http.Request) { writeForever(w, r, strings.Repeat(" ", 1<<16)) },
		"no end of items": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"kind":"List","metadata":{"resourceVersion":"1"},"items":[{}`)
			writeForever(w, r, strings.Repeat(`,{"metadata":{"name":"n"}}`, 1000))
		},
	}
	for path := range answers {
		for failure, respond := range failures {
			t.Run(strings.TrimPrefix(path, "/")+": "+failure, func(t *testing.T) {
				t.Parallel()
				server := newHTTP2Server(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == path {
						respond(w, r)
						return
					}
					fmt.Fprint(w, answers[r.URL.Path])
				})
				c := connectWith(t, server.URL, certOf(server), watch.Options{HeaderTimeout: 100 * time.Millisecond, ProgressTimeout: 100 * time.Millisecond})
				_, _, err := c.Identify(t.Context())
				if err == nil {
					_, err = c.Discover(t.Context())
				}
				if err == nil || vedette.KindOf(err) != vedette.Unavailable {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

func writeForever(w http.ResponseWriter, r *http.Request, piece string) {
	for r.Context().Err() == nil {
		if _, err := fmt.Fprint(w, piece); err != nil {
			return
		}
	}
}
