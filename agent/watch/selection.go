package watch

import (
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
	"github.com/vedette-io/vedette/agent/kube"
)

// Selection is the part of a cluster that an account watches. Custom kinds of CustomResourceDefinitions are watched besides Kinds. With
// OnlyNamespaced, the CustomResourceDefinitions and the Namespaces are derived from the configuration. OnlySpinnakerManaged keeps
// Namespaces and CustomResourceDefinitions.
type Selection struct {
	// Kinds to cache, for example deployment or CronTab.stable.example.com. Default: the kinds of the server's
	// cache.kinds. Cannot be combined with omitKinds.
	Kinds []string `config:"kinds"`
	// Kinds not to cache.
	OmitKinds []string `config:"omitKinds"`
	// Namespaces to watch. Default: all. Each kind costs one watch per namespace. Cannot be combined with omitNamespaces.
	Namespaces []string `config:"namespaces"`
	// Namespaces not to watch.
	OmitNamespaces []string `config:"omitNamespaces"`
	// Never request cluster-scoped resources, for agents without cluster-wide rights. Set namespaces and
	// customResourceDefinitions too, because the agent cannot list them then.
	OnlyNamespaced bool `config:"onlyNamespacedResources" default:"false"`
	// Cache only objects that Spinnaker deployed.
	OnlySpinnakerManaged bool `config:"onlySpinnakerManaged" default:"false"`
	// Custom kinds of the cluster. Needed only with onlyNamespacedResources.
	CustomResourceDefinitions []CustomResourceDefinition `config:"customResourceDefinitions"`

	DefaultKinds []string // from the server; vedette.DefaultKinds if empty
}

// CustomResourceDefinition declares a custom kind.
type CustomResourceDefinition struct {
	// Kind and group, for example CronTab.stable.example.com.
	Kind string `config:"kind"`
	// Namespaced or Cluster.
	Scope string `config:"scope" default:"Namespaced" enum:"Namespaced,Cluster"`
}

func (d CustomResourceDefinition) isNamespaced() bool { return !strings.EqualFold(d.Scope, "Cluster") }

var (
	namespaceKind  = vedette.Kind{Name: "Namespace"}
	secretKind     = vedette.Kind{Name: "Secret"}
	crdKind        = vedette.Kind{Group: "apiextensions.k8s.io", Name: "CustomResourceDefinition"}
	apiServiceKind = vedette.Kind{Group: "apiregistration.k8s.io", Name: "APIService"}
)

// Feeds returns the feeds of the selection in a cluster that serves cat, in the order of
// their names in the selection. Unknown are the configured names of kinds that are not
// served or are never watched (Events).
//
// A name without a group means the kinds of that name in the API groups of Kubernetes
// itself. If these have none, it means the kinds of that name in all groups, unless it is
// one of the default kinds, and not of the account's own configuration: nobody has asked
// for another "Pod" than that of Kubernetes.
func (s Selection) Feeds(cat kube.Catalogue) (feeds []FeedSpec, unknown []string) {
	resources, unknown := s.selectResources(cat)
	omitted := s.omitted(cat)
	namespaces := subtract(s.Namespaces, s.OmitNamespaces)
	for _, r := range resources {
		switch {
		case omitted[r.Kind] || s.OnlyNamespaced && !r.Namespaced:
		case r.Namespaced && len(s.Namespaces) > 0:
			for _, ns := range namespaces {
				feeds = append(feeds, s.feedSpec(r, ns))
			}
		default:
			feeds = append(feeds, s.feedSpec(r, ""))
		}
	}
	if s.OnlyNamespaced {
		feeds = append(feeds, s.syntheticFeeds(cat, omitted)...)
	}
	return feeds, unknown
}

func (s Selection) feedSpec(r vedette.Resource, namespace string) FeedSpec {
	w := FeedSpec{Feed: vedette.Feed{Kind: r.Kind, Namespace: namespace}, Resource: r, metadataOnly: r.Kind == secretKind,
		managedOnly: s.OnlySpinnakerManaged && r.Kind != namespaceKind && r.Kind != crdKind}
	if namespace == "" && (r.Namespaced || r.Kind == namespaceKind) {
		w.Omit = slices.Compact(slices.Sorted(slices.Values(s.OmitNamespaces)))
	}
	return w
}

// Covers reports whether a feed of the selection contains an object, in a cluster that
// serves cat: whether its kind and namespace are selected, in the version that the feed
// reads, and whether Spinnaker manages it if OnlySpinnakerManaged is set. Of the object it
// needs key and annotations.
func (s Selection) Covers(cat kube.Catalogue, r vedette.Resource, o *vedette.Object) bool {
	feeds, _ := s.Feeds(cat)
	return slices.ContainsFunc(feeds, func(w FeedSpec) bool { return w.covers(r, o) })
}

// Selects reports whether a feed of the selection contains an object of a resource if the cluster has no other one of that name. It says
// nothing of the version that the feed reads.
func (s Selection) Selects(r vedette.Resource, o *vedette.Object) bool {
	return s.Covers(kube.Catalogue{Resources: []vedette.Resource{r}}, r, o)
}

// covers reports whether the feed contains an object that was read from resource r.
func (w FeedSpec) covers(r vedette.Resource, o *vedette.Object) bool {
	return w.Resource.Version == r.Version && w.contains(r.Kind, o)
}

// contains reports whether the feed contains an object of a kind. A synthetic feed contains no objects of the cluster.
func (w FeedSpec) contains(kind vedette.Kind, o *vedette.Object) bool {
	namespace := o.Namespace
	if w.Kind == namespaceKind {
		namespace = o.Name
	}
	switch {
	case w.Objects != nil || w.Kind != kind:
		return false
	case w.Namespace != "" && w.Namespace != o.Namespace || slices.Contains(w.Omit, namespace):
		return false
	}
	return !w.managedOnly || o.Annotations[jsonstream.ManagedAnnotation] != ""
}

func (s Selection) selectResources(cat kube.Catalogue) (resources []vedette.Resource, unknown []string) {
	seen := map[vedette.Kind]bool{}
	add := func(found []vedette.Resource) {
		for _, r := range found {
			if !seen[r.Kind] {
				seen[r.Kind] = true
				resources = append(resources, r)
			}
		}
	}
	for _, name := range s.names() {
		found := match(cat, name)
		if len(s.Kinds) == 0 && isDefaultKind(name) {
			found = filter(found, isOwnDefaultKind)
		}
		if len(found) == 0 && len(s.Kinds) > 0 {
			unknown = append(unknown, name)
		}
		add(found)
	}
	for _, custom := range s.CustomResourceDefinitions {
		found := match(cat, custom.Kind)
		if len(found) == 0 && !s.OnlyNamespaced {
			unknown = append(unknown, custom.Kind)
		}
		add(found)
	}
	return resources, unknown
}

func (s Selection) names() []string {
	switch {
	case len(s.Kinds) > 0:
		return s.Kinds
	case len(s.DefaultKinds) > 0:
		return s.DefaultKinds
	}
	return vedette.DefaultKinds
}

func (s Selection) omitted(cat kube.Catalogue) map[vedette.Kind]bool {
	omitted := map[vedette.Kind]bool{}
	for _, name := range s.OmitKinds {
		for _, r := range match(cat, name) {
			omitted[r.Kind] = true
		}
	}
	return omitted
}

func match(cat kube.Catalogue, name string) []vedette.Resource {
	name = strings.TrimSpace(name)
	if name == "*" || strings.EqualFold(name, "all") {
		return filter(cat.Resources, func(r vedette.Resource) bool { return !isNeverWatched(r.Kind) && r.Kind != secretKind })
	}
	found := filter(cat.Resources, func(r vedette.Resource) bool { return r.Matches(name) && !isNeverWatched(r.Kind) })
	if strings.Contains(name, ".") {
		return found
	}
	if own := filter(found, isOwnDefaultKind); len(own) > 0 {
		return own
	}
	if native := filter(found, func(r vedette.Resource) bool { return vedette.IsNativeGroup(r.Kind.Group) }); len(native) > 0 {
		return native
	}
	return found
}

// defaultGroups are the API groups in which Kubernetes itself serves the default kinds, or
// once did. vedette.IsNativeGroup is not enough to tell: any group without a dot counts as
// native, and one API server may serve thousands of them.
var defaultGroups = map[string][]string{
	"ReplicaSet": {"apps", "extensions"}, "Deployment": {"apps", "extensions"}, "DaemonSet": {"apps", "extensions"}, "StatefulSet": {"apps"},
	"Service": {""}, "Pod": {""}, "Namespace": {""}, "Job": {"batch"}, "CronJob": {"batch"},
	"Ingress": {"networking.k8s.io", "extensions"}, "NetworkPolicy": {"networking.k8s.io", "extensions"},
	"CustomResourceDefinition": {"apiextensions.k8s.io"},
}

// isOwnDefaultKind reports whether a resource is a default kind of Kubernetes itself.
func isOwnDefaultKind(r vedette.Resource) bool {
	return slices.Contains(defaultGroups[r.Kind.Name], r.Kind.Group)
}

// isDefaultKind reports whether a name is that of a default kind, in any case.
func isDefaultKind(name string) bool {
	for kind := range defaultGroups {
		if strings.EqualFold(kind, strings.TrimSpace(name)) {
			return true
		}
	}
	return false
}

// isNeverWatched reports whether a kind is not part of a cluster's state: events, of which
// there are more than of all other kinds, and metrics, which change with every read.
func isNeverWatched(k vedette.Kind) bool {
	return k.Name == "Event" && (k.Group == "" || k.Group == "events.k8s.io") ||
		k.Name == "ComponentStatus" && k.Group == "" || k.Group == "metrics.k8s.io"
}

func filter(rs []vedette.Resource, include func(vedette.Resource) bool) (kept []vedette.Resource) {
	for _, r := range rs {
		if include(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

// subtract returns the names of a that are not in b, sorted, each once.
func subtract(a, b []string) (remaining []string) {
	for _, name := range a {
		if !slices.Contains(b, name) {
			remaining = append(remaining, name)
		}
	}
	slices.Sort(remaining)
	return slices.Compact(remaining)
}
