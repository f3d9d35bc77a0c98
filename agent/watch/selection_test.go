package watch

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
)

// testCatalogue returns kinds with colliding names.
func testCatalogue() kube.Catalogue {
	r := func(kind, version, plural string, namespaced bool, short ...string) vedette.Resource {
		k := vedette.ParseKind(kind)
		return vedette.Resource{Kind: k, Version: version, Plural: plural, Singular: strings.ToLower(k.Name), Namespaced: namespaced, ShortNames: short}
	}
	return kube.Catalogue{Resources: []vedette.Resource{
		r("ConfigMap", "v1", "configmaps", true, "cm"), r("Event", "v1", "events", true, "ev"), r("Namespace", "v1", "namespaces", false, "ns"),
		r("Node", "v1", "nodes", false, "no"), r("Pod", "v1", "pods", true, "po"), r("Secret", "v1", "secrets", true), r("Service", "v1", "services", true, "svc"),
		r("CustomResourceDefinition.apiextensions.k8s.io", "v1", "customresourcedefinitions", false, "crd", "crds"),
		r("Deployment.apps", "v1", "deployments", true, "deploy"), r("Job.batch", "v1", "jobs", true), r("Job.armory.io", "v1alpha1", "jobs", true),
		r("Event.events.k8s.io", "v1", "events", true, "ev"), r("Ingress.networking.k8s.io", "v1", "ingresses", true, "ing"),
		r("Service.serving.knative.dev", "v1", "services", true, "ksvc"), r("SpinnakerService.io", "v1", "spinnakerservices", true), r("SpinnakerService.armory.io", "v1", "spinnakerservices", true),
		r("PodMetrics.metrics.k8s.io", "v1beta1", "pods", true), r("ClusterThing.example.org", "v1", "clusterthings", false),
	}}
}

// foreignCatalogue serves kinds of Kubernetes in groups that are not its own.
func foreignCatalogue() kube.Catalogue {
	cat := kube.Catalogue{}
	for _, kind := range []string{"CronJob.armory", "CronJob.example.org", "Pod", "Pod.armory", "Pod.g1", "Podlike.g2", "StatefulSet.g1"} {
		k := vedette.ParseKind(kind)
		plural := strings.ToLower(strings.TrimSuffix(k.Name, "like")) + "s"
		cat.Resources = append(cat.Resources, vedette.Resource{Kind: k, Version: "v1", Plural: plural, Namespaced: true})
	}
	return cat
}

func TestSelectionChoosesServedKinds(t *testing.T) {
	for _, tt := range []struct {
		name    string
		s       Selection
		want    string
		unknown string
	}{
		{"empty: the default kinds that are served", Selection{}, "Service Ingress.networking.k8s.io Deployment.apps Pod Job.batch Namespace CustomResourceDefinition.apiextensions.k8s.io", ""},
		{"kinds from the server", Selection{DefaultKinds: []string{"pod", "nowhere"}}, "Pod", ""},
		{"kinds of the account replace them", Selection{DefaultKinds: []string{"pod"}, Kinds: []string{"cm"}}, "ConfigMap", ""},
		{"kind, plural, singular and short name, in any case, each kind once", Selection{Kinds: []string{"PODS", "po", "Pod", "deploy", " svc "}}, "Pod Deployment.apps Service", ""},
		{"a name with a group means that group", Selection{Kinds: []string{"job.armory.io", "Service.serving.knative.dev"}}, "Job.armory.io Service.serving.knative.dev", ""},
		{"a name without a group means Kubernetes' own groups", Selection{Kinds: []string{"job", "ingress"}}, "Job.batch Ingress.networking.k8s.io", ""},
		{"or all other groups with that name", Selection{Kinds: []string{"ClusterThing", "ksvc"}}, "ClusterThing.example.org Service.serving.knative.dev", ""},
		{"a group without dots counts as Kubernetes' own", Selection{Kinds: []string{"SpinnakerService"}}, "SpinnakerService.io", ""},
		{"kinds that are not served are reported", Selection{Kinds: []string{"pod", "gadget", "job.extensions"}}, "Pod", "gadget job.extensions"},
		{"events are never watched", Selection{Kinds: []string{"event", "ev", "events.events.k8s.io", "pod.metrics.k8s.io"}}, "", "event ev events.events.k8s.io pod.metrics.k8s.io"},
		{"all means all except events, metrics and Secrets", Selection{Kinds: []string{"All"}},
			"ConfigMap Namespace Node Pod Service CustomResourceDefinition.apiextensions.k8s.io Deployment.apps Job.batch Job.armory.io Ingress.networking.k8s.io Service.serving.knative.dev SpinnakerService.io SpinnakerService.armory.io ClusterThing.example.org", ""},
		{"Secrets by name", Selection{Kinds: []string{"*", "secret"}, OmitKinds: []string{"clusterthing", "job.armory.io", "service", "crd", "spinnakerservice.io", "spinnakerservice.armory.io"}},
			"ConfigMap Namespace Node Pod Deployment.apps Job.batch Ingress.networking.k8s.io Service.serving.knative.dev Secret", ""},
		{"omitted kinds are removed", Selection{Kinds: []string{"pod", "cm"}, OmitKinds: []string{"pods", "unheard"}}, "ConfigMap", ""},
		{"namespaces multiply only namespaced kinds", Selection{Kinds: []string{"pod", "node"}, Namespaces: []string{"b", "a", "b"}}, "Pod/a Pod/b Node", ""},
		{"less those omitted", Selection{Kinds: []string{"pod"}, Namespaces: []string{"b", "a"}, OmitNamespaces: []string{"b"}}, "Pod/a", ""},
		{"all of them omitted is none, not all", Selection{Kinds: []string{"pod"}, Namespaces: []string{"b"}, OmitNamespaces: []string{"b"}}, "", ""},
		{"omitted namespaces alone are left to the API server", Selection{Kinds: []string{"pod", "ns", "node"}, OmitNamespaces: []string{"b", "a"}}, "Pod-[a b] Namespace-[a b] Node", ""},
		{"declared custom kinds are watched too", Selection{Kinds: []string{"pod"}, CustomResourceDefinitions: []CustomResourceDefinition{{Kind: "Job.armory.io"}}}, "Pod Job.armory.io", ""},
		{"custom resources that are not served are reported", Selection{Kinds: []string{"pod"}, CustomResourceDefinitions: []CustomResourceDefinition{{Kind: "Gone.example.org"}}}, "Pod", "Gone.example.org"},
		{"only namespaced: the rest is made up", Selection{OnlyNamespaced: true, Kinds: []string{"pod", "node"}, Namespaces: []string{"a", "b"}, CustomResourceDefinitions: []CustomResourceDefinition{{Kind: "Job.armory.io"}, {Kind: "Policy.example.org", Scope: "Cluster"}}},
			"Pod/a Pod/b Job.armory.io/a Job.armory.io/b Namespace(a,b) CustomResourceDefinition.apiextensions.k8s.io(jobs.armory.io,policies.example.org)", ""},
		{"only namespaced, nothing declared", Selection{OnlyNamespaced: true, Kinds: []string{"pod", "node", "ns", "crd"}}, "Pod", ""},
		{"made-up kinds can be omitted", Selection{OnlyNamespaced: true, Kinds: []string{"pod"}, OmitKinds: []string{"ns"}, Namespaces: []string{"a"}}, "Pod/a", ""},
	} {
		feeds, unknown := tt.s.Feeds(testCatalogue())
		if got := describe(t, feeds); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
		if got := strings.Join(unknown, " "); got != tt.unknown {
			t.Errorf("%s: unknown: got %q, want %q", tt.name, got, tt.unknown)
		}
	}
}

// TestKindsOfOtherGroups checks names of default kinds that groups other than those of Kubernetes serve
// too: a cluster with thousands of groups must not multiply the default feeds.
func TestKindsOfOtherGroups(t *testing.T) {
	for _, tt := range []struct {
		name    string
		s       Selection
		want    string
		unknown string
	}{
		{"default kinds are those of Kubernetes, whatever other groups serve", Selection{DefaultKinds: []string{"CronJob", "cronjob", "StatefulSet"}}, "", ""},
		{"a configured name may mean another group", Selection{Kinds: []string{"CronJob"}}, "CronJob.armory", ""},
		{"one group of Kubernetes precedes groups without dots", Selection{Kinds: []string{"pods"}}, "Pod", ""},
		{"the default kinds", Selection{}, "Pod", ""},
		{"plurals that other kinds share", Selection{DefaultKinds: []string{"pods"}}, "Pod", ""},
		{"a group that is named", Selection{Kinds: []string{"pod.g1"}}, "Pod.g1", ""},
	} {
		feeds, unknown := tt.s.Feeds(foreignCatalogue())
		if got := describe(t, feeds); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
		if got := strings.Join(unknown, " "); got != tt.unknown {
			t.Errorf("%s: unknown: got %q, want %q", tt.name, got, tt.unknown)
		}
	}
}

func describe(t *testing.T, feeds []FeedSpec) string {
	var words []string
	for _, w := range feeds {
		word := w.Feed.String()
		if len(w.Omit) > 0 {
			word += "-[" + strings.Join(w.Omit, " ") + "]"
		}
		if w.Objects != nil {
			word += "(" + strings.Join(namesOf(t, w), ",") + ")"
		}
		if w.metadataOnly != (w.Kind.Name == "Secret") {
			t.Errorf("%s: metadata only %v", w.Feed, w.metadataOnly)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func namesOf(t *testing.T, w FeedSpec) (names []string) {
	for _, raw := range w.Objects {
		var o struct {
			Kind, APIVersion string
			Metadata         struct{ Name, UID, ResourceVersion string }
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Error(err)
		}
		m := o.Metadata
		if m.UID != "synthetic:"+m.Name || m.ResourceVersion != "1" || o.Kind != w.Kind.Name || o.APIVersion != w.Resource.APIVersion() {
			t.Errorf("made up: %s", raw)
		}
		names = append(names, m.Name)
	}
	return names
}

// TestSelectionCoversOnlyItsObjects checks for single objects whether a feed contains them.
func TestSelectionCoversOnlyItsObjects(t *testing.T) {
	cat := testCatalogue()
	resource := func(kind string) vedette.Resource {
		for _, r := range cat.Resources {
			if r.Kind == vedette.ParseKind(kind) {
				return r
			}
		}
		t.Fatalf("%s is not served", kind)
		return vedette.Resource{}
	}
	olderResource := resource("Deployment.apps")
	olderResource.Version = "v1beta1"
	managed := map[string]string{"moniker.spinnaker.io/application": "web"}
	for _, tt := range []struct {
		name     string
		s        Selection
		resource vedette.Resource
		object   vedette.Object
		want     bool
	}{
		{"a default kind", Selection{}, resource("Pod"), vedette.Object{Key: vedette.Key{Namespace: "a"}}, true},
		{"another kind", Selection{}, resource("ConfigMap"), vedette.Object{Key: vedette.Key{Namespace: "a"}}, false},
		{"a configured kind", Selection{Kinds: []string{"cm"}}, resource("ConfigMap"), vedette.Object{Key: vedette.Key{Namespace: "a"}}, true},
		{"the same name in another group", Selection{Kinds: []string{"service"}}, resource("Service.serving.knative.dev"), vedette.Object{Key: vedette.Key{Namespace: "a"}}, false},
		{"an omitted kind", Selection{OmitKinds: []string{"po"}}, resource("Pod"), vedette.Object{Key: vedette.Key{Namespace: "a"}}, false},
		{"another version than the feed's", Selection{}, olderResource, vedette.Object{Key: vedette.Key{Namespace: "a"}}, false},
		{"a configured namespace", Selection{Namespaces: []string{"a", "b"}}, resource("Pod"), vedette.Object{Key: vedette.Key{Namespace: "b"}}, true},
		{"another namespace", Selection{Namespaces: []string{"a"}}, resource("Pod"), vedette.Object{Key: vedette.Key{Namespace: "b"}}, false},
		{"an omitted namespace", Selection{OmitNamespaces: []string{"b"}}, resource("Pod"), vedette.Object{Key: vedette.Key{Namespace: "b"}}, false},
		{"the omitted Namespace itself", Selection{OmitNamespaces: []string{"b"}}, resource("Namespace"), vedette.Object{Key: vedette.Key{Name: "b"}}, false},
		{"another Namespace", Selection{OmitNamespaces: []string{"b"}}, resource("Namespace"), vedette.Object{Key: vedette.Key{Name: "a"}}, true},
		{"a synthetic Namespace", Selection{OnlyNamespaced: true, Namespaces: []string{"a"}}, resource("Namespace"), vedette.Object{Key: vedette.Key{Name: "a"}}, false},
		{"managed by Spinnaker", Selection{OnlySpinnakerManaged: true}, resource("Pod"), vedette.Object{Key: vedette.Key{Namespace: "a"}, Annotations: managed}, true},
		{"not managed by Spinnaker", Selection{OnlySpinnakerManaged: true}, resource("Pod"), vedette.Object{Key: vedette.Key{Namespace: "a"}}, false},
		{"Namespaces count as managed", Selection{OnlySpinnakerManaged: true}, resource("Namespace"), vedette.Object{Key: vedette.Key{Name: "a"}}, true},
	} {
		if got := tt.s.Covers(cat, tt.resource, &tt.object); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestSelectionWithoutACatalogue checks what a selection selects of a resource of which alone is known.
func TestSelectionWithoutACatalogue(t *testing.T) {
	deployments := vedette.Resource{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Version: "v1beta1", Plural: "deployments", Namespaced: true}
	configMaps := vedette.Resource{Kind: vedette.Kind{Name: "ConfigMap"}, Version: "v1", Plural: "configmaps", ShortNames: []string{"cm"}, Namespaced: true}
	object := &vedette.Object{Key: vedette.Key{Namespace: "a"}}
	for _, tt := range []struct {
		name     string
		s        Selection
		resource vedette.Resource
		want     bool
	}{
		{"a default kind in any version", Selection{}, deployments, true},
		{"another kind", Selection{}, configMaps, false},
		{"a kind of the server", Selection{DefaultKinds: []string{"cm"}}, configMaps, true},
		{"another namespace", Selection{Namespaces: []string{"b"}}, deployments, false},
		{"an omitted namespace", Selection{OmitNamespaces: []string{"a"}}, deployments, false},
		{"not managed by Spinnaker", Selection{OnlySpinnakerManaged: true}, deployments, false},
	} {
		if got := tt.s.Selects(tt.resource, object); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestFeedsWithAMarkCoverObjects checks in which states a feed covers its objects.
func TestFeedsWithAMarkCoverObjects(t *testing.T) {
	pods := vedette.Resource{Kind: vedette.Kind{Name: "Pod"}, Version: "v1", Plural: "pods", Namespaced: true}
	w := NewWatcher(nil, Selection{}, discardSink{}, Config{})
	close(w.feedsKnown)
	f := w.newFeed(FeedSpec{Feed: vedette.Feed{Kind: pods.Kind}, Resource: pods}, discardSink{}, "")
	w.feeds[f.Feed] = f
	pod, node := &vedette.Object{Key: vedette.Key{Namespace: "a"}}, vedette.Resource{Kind: vedette.Kind{Name: "Node"}, Version: "v1"}
	if w.Covers(pods, pod) {
		t.Error("pending feed: got covered, want not covered")
	}
	for state, want := range map[vedette.FeedState]bool{vedette.FeedPending: false, vedette.FeedSyncing: true, vedette.FeedLive: true,
		vedette.FeedFailing: true, vedette.FeedDenied: false} {
		f.step(lifecycle.Started{})
		f.step(lifecycle.Failed{Failure: lifecycle.Failure{State: state, Message: "why", Delay: lifecycle.Backoff}})
		if w.Covers(pods, pod) != want || w.Covers(node, pod) {
			t.Errorf("state %s: got pod %v and node %v, want %v and false", state, w.Covers(pods, pod), w.Covers(node, pod), want)
		}
	}
	older := pods
	older.Version = "v1beta1"
	w.feeds[f.Feed] = w.newFeed(f.FeedSpec, discardSink{}, "12")
	if w.Covers(older, pod) || !w.Reports(older.Kind, pod) || w.Reports(node.Kind, pod) {
		t.Error("another version: got it covered or not reported, or another kind reported")
	}
	if !w.Covers(pods, pod) {
		t.Error("pending feed with a mark: got not covered, want covered")
	}
}

// TestWatcherCoversWaitsForDiscovery checks Covers before the first discovery.
func TestWatcherCoversWaitsForDiscovery(t *testing.T) {
	pods := vedette.Resource{Kind: vedette.Kind{Name: "Pod"}, Version: "v1", Plural: "pods", Namespaced: true}
	synctest.Test(t, func(t *testing.T) {
		w := NewWatcher(nil, Selection{}, discardSink{}, Config{})
		covers := make(chan bool, 1)
		ask := func() { covers <- w.Covers(pods, &vedette.Object{}) }
		began := time.Now()
		go ask()
		if <-covers || time.Since(began) != feedsKnownTimeout {
			t.Errorf("without discovery: returned after %v, want %v", time.Since(began), feedsKnownTimeout)
		}
		go ask()
		synctest.Wait()
		f := w.newFeed(FeedSpec{Feed: vedette.Feed{Kind: pods.Kind}, Resource: pods}, discardSink{}, "12")
		w.mu.Lock()
		w.feeds[f.Feed] = f
		w.mu.Unlock()
		close(w.feedsKnown)
		if !<-covers {
			t.Error("got not covered, want Covers to wait for the feeds")
		}
	})
}
