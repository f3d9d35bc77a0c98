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
)

// fakeGroups is the discovery of an API server whose custom groups change without an event.
type fakeGroups struct {
	discovery atomic.Pointer[string] // the items of /apis; nil answers 503
}

func (g *fakeGroups) set(items ...string) {
	doc := `{"kind":"APIGroupDiscoveryList","items":[` + strings.Join(items, ",") + `]}`
	g.discovery.Store(&doc)
}

// thingGroup returns a group with one kind.
func thingGroup(name, freshness string) string {
	resources := `[{"resource":"things","responseKind":{"kind":"Thing"},"scope":"Cluster","verbs":["list","watch"]}]`
	if freshness == "Stale" {
		resources = "[]"
	}
	return fmt.Sprintf(`{"metadata":{"name":%q},"versions":[{"version":"v1","freshness":%q,"resources":%s}]}`, name, freshness, resources)
}

func (g *fakeGroups) connect(t *testing.T) *kube.Cluster {
	const contentType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	server := kubetest.NewServer(t, func(w http.ResponseWriter, r *http.Request) {
		doc := g.discovery.Load()
		switch {
		case r.URL.Path == "/api":
			w.Header().Set("Content-Type", contentType)
			fmt.Fprint(w, discoveryOfCore)
		case r.URL.Path == "/apis" && doc == nil:
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/apis":
			w.Header().Set("Content-Type", contentType)
			fmt.Fprint(w, *doc)
		case r.URL.Query().Has("watch"):
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`)
		}
	})
	return kubetest.Connect(t, server, kube.Options{})
}

// frequentConfig discovers all the time.
var frequentConfig = watch.Config{MinBackoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond, SettleDelay: time.Millisecond,
	RediscoverInterval: 20 * time.Millisecond, ProbeInterval: time.Hour, Log: slog.New(slog.DiscardHandler)}

// TestDiscoveryIsComparedWithoutEvents serves a kind in a group whose API server recovers, which no
// watch reports: periodic discovery finds it. Before, the status names what is not watched.
func TestDiscoveryIsComparedWithoutEvents(t *testing.T) {
	things := vedette.Feed{Kind: vedette.Kind{Group: "late.example.org", Name: "Thing"}}
	var g fakeGroups
	g.set(thingGroup("late.example.org", "Stale"))
	r := newRecorder()
	start(t, g.connect(t), watch.Selection{Kinds: []string{"cm", "Thing.late.example.org"}}, r, frequentConfig, nil)
	r.await(t, "the status to name the kind that cannot be discovered", func() bool {
		return strings.Contains(r.problem, "does not respond to discovery") && strings.Contains(r.problem, "Thing.late.example.org")
	})
	g.set(thingGroup("late.example.org", "Current"))
	r.await(t, "the feed of the group", func() bool { return r.state(things) == vedette.FeedLive && r.problem == "" })
	r.check(t)
}

// TestFailingDiscoveryIsReported checks that an account whose feeds are live says that new kinds are not
// watched, because discovery fails, and says so no longer once it succeeds.
func TestFailingDiscoveryIsReported(t *testing.T) {
	var g fakeGroups
	g.set()
	r := newRecorder()
	start(t, g.connect(t), watch.Selection{Kinds: []string{"cm"}}, r, frequentConfig, nil)
	r.await(t, "the feed to be live", func() bool { return r.state(configMapFeed) == vedette.FeedLive })
	g.discovery.Store(nil)
	r.await(t, "the state of the account", func() bool {
		return r.account.State == vedette.FeedFailing && strings.Contains(r.account.Message, "kinds that were added to the cluster since are not watched")
	})
	if r.state(configMapFeed) != vedette.FeedLive {
		t.Errorf("got a feed that is %s, want it to stay live", r.state(configMapFeed))
	}
	g.set()
	r.await(t, "the account to recover", func() bool { return r.account.State == vedette.FeedLive && r.account.Message == "" })
}

// TestAccountOfTooManyKindsSaysSo selects all kinds of a cluster that serves more than an account may
// watch.
func TestAccountOfTooManyKindsSaysSo(t *testing.T) {
	var g fakeGroups
	var groups []string
	for i := range 30 {
		groups = append(groups, thingGroup(fmt.Sprintf("g%d.example.org", i), "Current"))
	}
	g.set(groups...)
	r := newRecorder()
	cfg := frequentConfig
	cfg.MaxFeeds = 20
	start(t, g.connect(t), watch.Selection{Kinds: []string{"all"}}, r, cfg, nil)
	r.await(t, "as many feeds as are allowed", func() bool {
		return len(r.feeds) == 20 && allLive(r) && strings.Contains(r.problem, "selects 31 feeds in this cluster, and only 20 of them are watched")
	})
	g.set(groups[15:]...)
	r.await(t, "all feeds of the kinds that are left", func() bool { return len(r.feeds) == 16 && allLive(r) && r.problem == "" })
	r.check(t)
}
