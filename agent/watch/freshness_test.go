package watch

import (
	"slices"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
)

// TestFreshnessOfFailingFeeds checks that a feed that has a mark and fails is as complete as was proven, and not as
// complete as the others: not after it was complete, and not after the server has made it continue from an earlier mark.
func TestFreshnessOfFailingFeeds(t *testing.T) {
	began := time.Now().Add(-time.Hour)
	now := began.Add(time.Hour)
	for name, tt := range map[string]struct {
		prepare func(f *feed)
		want    time.Time // zero if it is unknown
	}{
		"never complete":                 {func(*feed) {}, now.Add(-time.Second)},
		"complete before":                {func(f *feed) { f.evidence.Listed(began) }, began},
		"made to continue from a mark":   {func(f *feed) { f.evidence.Listed(began); f.step(lifecycle.ResetWanted{From: "5"}) }, time.Time{}},
		"made to begin with a snapshot":  {func(f *feed) { f.evidence.Listed(began); f.step(lifecycle.ResetWanted{}) }, now.Add(-time.Second)},
		"continued, and complete by now": {func(f *feed) { f.step(lifecycle.ResetWanted{From: "5"}); f.evidence.Listed(began) }, began},
	} {
		w := NewWatcher(nil, Selection{}, discardSink{}, Config{})
		add := func(kind vedette.Kind, state vedette.FeedState) *feed {
			name := vedette.Feed{Kind: kind}
			f := w.newFeed(FeedSpec{Feed: name}, discardSink{}, "")
			f.status.Store(&FeedStatus{Feed: name, State: state})
			w.feeds[name] = f
			return f
		}
		w.hasFeeds = true
		live := add(vedette.Kind{Name: "Pod"}, vedette.FeedLive)
		live.evidence.Open(nil, now.Add(-2*time.Second))
		live.evidence.BeginRead(now.Add(-2 * time.Second))
		w.prover.last = kube.Proof{Sent: now.Add(-time.Second), Answered: now.Add(-time.Second / 2)}
		tt.prepare(add(vedette.Kind{Name: "Secret"}, vedette.FeedFailing))
		got := w.Freshness(now)
		if !got.Live.Equal(now.Add(-time.Second)) || !got.All.Equal(tt.want) {
			t.Errorf("%s: got live %v and all %v, want all %v", name, got.Live, got.All, tt.want)
		}
	}
}

// TestSecretsAreNeverListedAsProof checks which lists are asked for to prove that an API server reaches etcd.
func TestSecretsAreNeverListedAsProof(t *testing.T) {
	type listed struct {
		resource  vedette.Resource
		namespace string
		state     vedette.FeedState // "" for none yet
	}
	resource := func(group, name, plural string) vedette.Resource {
		return vedette.Resource{Kind: vedette.Kind{Group: group, Name: name}, Version: "v1", Plural: plural}
	}
	pods, configMaps, secrets := resource("", "Pod", "pods"), resource("", "ConfigMap", "configmaps"), resource("", "Secret", "secrets")
	deployments, events := resource("apps", "Deployment", "deployments"), resource("", "Event", "events")
	widgets := resource("example.com", "Widget", "widgets")
	for name, tt := range map[string]struct {
		feeds []listed
		want  []string
	}{
		"the best ones first": {[]listed{{events, "", vedette.FeedLive}, {widgets, "", vedette.FeedLive}, {configMaps, "", vedette.FeedLive}, {pods, "", vedette.FeedLive}},
			[]string{"/api/v1/pods", "/api/v1/configmaps", "/apis/example.com/v1/widgets"}},
		"what is left": {[]listed{{events, "n", vedette.FeedFailing}, {widgets, "n", ""}, {pods, "n", vedette.FeedDenied}},
			[]string{"/apis/example.com/v1/namespaces/n/widgets", "/api/v1/namespaces/n/events"}},
		"never Secrets": {[]listed{{secrets, "", vedette.FeedLive}}, nil},
		"of namespaces": {[]listed{{pods, "b", vedette.FeedLive}, {deployments, "a", vedette.FeedLive}, {pods, "a", vedette.FeedLive}},
			[]string{"/api/v1/namespaces/a/pods", "/api/v1/namespaces/b/pods", "/apis/apps/v1/namespaces/a/deployments"}},
	} {
		w := NewWatcher(nil, Selection{}, discardSink{}, Config{})
		for _, l := range tt.feeds {
			name := vedette.Feed{Kind: l.resource.Kind, Namespace: l.namespace}
			f := w.newFeed(FeedSpec{Feed: name, Resource: l.resource}, discardSink{}, "")
			if l.state != "" {
				f.status.Store(&FeedStatus{Feed: name, State: l.state})
			}
			w.feeds[name] = f
		}
		if got := w.provingPaths(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
