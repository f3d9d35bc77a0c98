package watch_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/agent/watch"
)

// rejectingServer is an API server that rejects credentials while status is set. Like a real one,
// it leaves open watches alone then.
type rejectingServer struct {
	status  atomic.Int64 // of all requests while it is not zero
	probes  counter
	watches atomic.Int64
}

// counter counts events that a test waits for. The zero value is ready to use.
type counter struct {
	mu      sync.Mutex
	n       int
	changed chan struct{} // closed at the next event; nil if nobody waits
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// awaitMore waits for n more events.
func (c *counter) awaitMore(t *testing.T, n int) {
	t.Helper()
	deadline := time.After(time.Minute)
	c.mu.Lock()
	defer c.mu.Unlock()
	for until := c.n + n; c.n < until; {
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-deadline:
			t.Error("timed out waiting for requests")
			until = 0
		}
		c.mu.Lock()
	}
}

func (s *rejectingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/version" {
		s.probes.add()
	}
	switch status := int(s.status.Load()); {
	case status != 0:
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"kind":"Status","code":%d,"reason":"Because","message":"no"}`, status)
	case r.URL.Path == "/version":
		fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
	case r.URL.Query().Has("watch"):
		s.watches.Add(1)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`)
	}
}

// TestRejectedCredentialsAreNoticed checks that feeds are denied while their watches are
// open, and live again without waiting for the end of a pause of an hour.
func TestRejectedCredentialsAreNoticed(t *testing.T) {
	var api rejectingServer
	server := newAPIServer(t, api.ServeHTTP)
	r := newRecorder()
	cfg := watch.Config{ProbeInterval: 10 * time.Millisecond, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond,
		MinDeniedBackoff: time.Hour, MaxDeniedBackoff: time.Hour, Log: slog.New(slog.DiscardHandler)}
	start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap", "secret"}}, r, cfg, nil)
	awaitAll := func(state vedette.FeedState) {
		t.Helper()
		r.await(t, "all feeds to be "+string(state), func() bool { return r.state(configMapFeed) == state && r.state(secretFeed) == state })
	}
	awaitAll(vedette.FeedLive)
	api.status.Store(http.StatusUnauthorized)
	awaitAll(vedette.FeedDenied)
	r.mu.Lock()
	if m := r.feeds[configMapFeed].message; !strings.Contains(m, "rejected the credentials") {
		t.Errorf("got message %q, want it to say that the credentials were rejected", m)
	}
	r.mu.Unlock()
	api.status.Store(0)
	awaitAll(vedette.FeedLive)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.feeds[configMapFeed].snapshots; n != 1 {
		t.Errorf("got %d snapshots, want 1: the watch continues from its mark", n)
	}
}

// TestProbeLeavesWatchesAlone checks that watches stay open while the credentials are
// accepted, and while the API server fails for other reasons.
func TestProbeLeavesWatchesAlone(t *testing.T) {
	var api rejectingServer
	server := newAPIServer(t, api.ServeHTTP)
	r := newRecorder()
	cfg := watch.Config{ProbeInterval: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap"}}, r, cfg, nil)
	r.await(t, "the feed to be live", func() bool { return r.state(configMapFeed) == vedette.FeedLive })
	for api.watches.Load() == 0 && !t.Failed() { // a feed is live before its watch begins
		api.probes.awaitMore(t, 1)
	}
	for _, status := range []int64{0, http.StatusForbidden, http.StatusServiceUnavailable} {
		api.status.Store(status)
		api.probes.awaitMore(t, 5)
	}
	if n := api.watches.Load(); n != 1 {
		t.Errorf("got %d watches, want the first one only", n)
	}
}

// TestDeniedFeedsAreLoggedTogether checks that a set of denied feeds is one warning, however
// often the feeds are retried, and that the end of the denial is logged.
func TestDeniedFeedsAreLoggedTogether(t *testing.T) {
	var api rejectingServer
	var lists counter
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		lists.add()
		api.ServeHTTP(w, r)
	})
	api.status.Store(http.StatusForbidden)
	logs := newLogLines()
	r := newRecorder()
	cfg := watch.Config{MinDeniedBackoff: time.Millisecond, MaxDeniedBackoff: 2 * time.Millisecond, SettleDelay: 2 * time.Second, Log: slog.New(logs)}
	start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap", "secret"}}, r, cfg, nil)
	logs.await(t, "WARN the cluster denies feeds of the account")
	lists.awaitMore(t, 50)
	api.status.Store(0)
	logs.await(t, "INFO the cluster denies no feed any more")
	warnings := logs.matching("WARN the cluster denies feeds")
	if len(warnings) != 1 || !strings.Contains(warnings[0], "count=2") || !strings.Contains(warnings[0], "feeds=ConfigMap, Secret") ||
		!strings.Contains(warnings[0], "vedette-agent rbac") {
		t.Errorf("got %q, want one warning with both feeds and what to do", warnings)
	}
}

// TestGrantedRightsAreNoticed checks that feeds are live after rights were granted, without waiting for
// the end of a pause of an hour, and that what is still denied is not another warning.
func TestGrantedRightsAreNoticed(t *testing.T) {
	var api rejectingServer
	var granted sync.Map // by the name of the resource
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		resource := path.Base(r.URL.Path)
		if _, isGranted := granted.Load(resource); isGranted || resource == "version" {
			api.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}`)
	})
	logs := newLogLines()
	r := newRecorder()
	cfg := watch.Config{ProbeInterval: 10 * time.Millisecond, MinDeniedBackoff: time.Hour, MaxDeniedBackoff: time.Hour,
		SettleDelay: 10 * time.Millisecond, Log: slog.New(logs)}
	start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap", "secret"}}, r, cfg, nil)
	logs.await(t, "WARN the cluster denies feeds of the account count=2")
	before := len(logs.matching("WARN"))
	granted.Store("configmaps", true)
	logs.await(t, "INFO the cluster denies fewer feeds of the account count=1 feeds=Secret")
	granted.Store("secrets", true)
	logs.await(t, "INFO the cluster denies no feed any more")
	r.await(t, "all feeds to be live", func() bool {
		return r.state(configMapFeed) == vedette.FeedLive && r.state(secretFeed) == vedette.FeedLive
	})
	if warnings := logs.matching("WARN"); len(warnings) != before {
		t.Errorf("got %q, want no warning about what is still denied", warnings)
	}
}

// TestPageInsteadOfAList checks that a feed says what answered. Only an API server may say that a kind is not served.
func TestPageInsteadOfAList(t *testing.T) {
	for name, tt := range map[string]struct{ contentType, body, want string }{
		"a gateway":     {"text/html", "<html>404", "an HTML page"},
		"an API server": {"text/plain", "404 page not found\n", "no longer serves ConfigMap"},
		"a Status":      {"application/json", `{"kind":"Status","code":404,"reason":"NotFound"}`, "no longer serves ConfigMap"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.contentType)
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, tt.body)
			})
			r := newRecorder()
			cfg := watch.Config{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
			start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap"}}, r, cfg, nil)
			r.await(t, "the feed to fail", func() bool { return r.state(configMapFeed) == vedette.FeedFailing })
			r.mu.Lock()
			defer r.mu.Unlock()
			if got := r.feeds[configMapFeed].message; !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestRefusalsDoNotProveFreshness checks up to when an account is complete that may not read kube-system: an answer to a list proves it, and that
// the API server denies a request, which it also does without etcd, does not.
func TestRefusalsDoNotProveFreshness(t *testing.T) {
	var probes counter
	var isCutOff atomic.Bool // the API server from etcd
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/v1/namespaces/kube-system":
			probes.add()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}`)
		case r.URL.Query().Has("watch"):
			kubetest.Hang(w, r, "")
		case isCutOff.Load():
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"kind":"Status","code":500,"reason":"InternalError","message":"etcdserver: request timed out"}`)
		default:
			fmt.Fprint(w, emptyList)
		}
	})
	r := newRecorder()
	cfg := watch.Config{Log: slog.New(slog.DiscardHandler), ProofInterval: func() time.Duration { return 50 * time.Millisecond }}
	w, _ := start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap"}}, r, cfg, nil)
	r.await(t, "the feed to be live", func() bool { return r.state(configMapFeed) == vedette.FeedLive })
	live := time.Now()
	awaitProofAfter := func(at time.Time) {
		t.Helper()
		for !w.Freshness(time.Now()).Live.After(at) && !t.Failed() {
			probes.awaitMore(t, 1)
		}
	}
	awaitProofAfter(live)
	isCutOff.Store(true)
	lost := time.Now()
	probes.awaitMore(t, 5)
	if got := w.Freshness(time.Now()).Live; got.After(lost) {
		t.Errorf("the account is complete up to %v after etcd was lost", got.Sub(lost))
	}
	isCutOff.Store(false)
	awaitProofAfter(lost)
}
