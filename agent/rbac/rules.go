package rbac

import (
	"cmp"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch"
)

// Needs is what an account does in its cluster.
type Needs struct {
	// Cached are the feeds of the account. Their objects are watched, and changed by operations.
	Cached []watch.FeedSpec
	// Changed are feeds of kinds that operations change although the account does not cache them.
	Changed []watch.FeedSpec
	// Namespaces are those to which the account is restricted; empty for all.
	Namespaces []string
	// OnlyNamespaced leaves out everything that needs rights in the whole cluster.
	OnlyNamespaced bool
	// ReadOnly leaves out the rights of operations that change objects.
	ReadOnly bool
	// Metrics includes the usage of pods.
	Metrics bool
	// Servers is the namespace of the servers among which the agent chooses; empty if it does not, or not with the credentials of the
	// account.
	Servers string
}

// rule is a set of verbs for one resource.
type rule struct {
	namespace string // empty for the whole cluster
	group     string
	resource  string // with its subresource
	name      string // empty for all objects
	verbs     []string
	missing   []string // of verbs
}

// allVerbs are the verbs in the order in which they are printed.
var allVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

var (
	watchVerbs  = []string{"list", "watch"}
	readVerbs   = []string{"get", "list"}
	changeVerbs = []string{"get", "list", "create", "update", "patch", "delete"}
)

// ruleSet collects rules, one for each resource.
type ruleSet struct{ rules []*rule }

func (s *ruleSet) add(r rule, verbs ...string) {
	at := slices.IndexFunc(s.rules, func(o *rule) bool {
		return o.namespace == r.namespace && o.group == r.group && o.resource == r.resource && o.name == r.name
	})
	if at < 0 {
		s.rules = append(s.rules, &r)
		at = len(s.rules) - 1
	}
	found := s.rules[at]
	found.verbs = slices.DeleteFunc(slices.Clone(allVerbs), func(verb string) bool {
		return !slices.Contains(found.verbs, verb) && !slices.Contains(verbs, verb)
	})
}

// has reports whether a rule of all objects of a resource has a verb in the whole cluster.
func (s *ruleSet) has(group, resource, verb string) bool {
	return slices.ContainsFunc(s.rules, func(r *rule) bool {
		return r.namespace == "" && r.name == "" && r.group == group && r.resource == resource && slices.Contains(r.verbs, verb)
	})
}

// rules returns the rules for the needs, those of the whole cluster first.
func (n Needs) rules() []*rule {
	s := &ruleSet{}
	for _, f := range n.Cached {
		if f.Objects == nil { // else it is derived from the configuration
			s.add(ruleOf(f), watchVerbs...)
			n.addOperations(s, f)
		}
	}
	for _, f := range n.Changed {
		n.addOperations(s, f)
	}
	n.addClusterRules(s)
	n.addEvents(s)
	if n.Servers != "" {
		s.add(rule{namespace: n.Servers, group: "discovery.k8s.io", resource: "endpointslices"}, "list")
	}
	slices.SortStableFunc(s.rules, func(a, b *rule) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource),
			cmp.Compare(a.name, b.name))
	})
	return s.rules
}

func ruleOf(f watch.FeedSpec) rule {
	return rule{namespace: f.Namespace, group: f.Kind.Group, resource: f.Resource.Plural}
}

func (n Needs) addOperations(s *ruleSet, f watch.FeedSpec) {
	if f.Objects != nil {
		return
	}
	verbs := changeVerbs
	if n.ReadOnly {
		verbs = readVerbs
	}
	s.add(ruleOf(f), verbs...)
	switch f.Kind {
	case vedette.Kind{Name: "Pod"}:
		s.add(rule{namespace: f.Namespace, resource: "pods/log"}, "get")
		if n.Metrics {
			s.add(rule{namespace: f.Namespace, group: "metrics.k8s.io", resource: "pods"}, readVerbs...)
		}
	case vedette.Kind{Group: "apps", Name: "Deployment"}:
		s.add(rule{namespace: f.Namespace, group: "apps", resource: "replicasets"}, "list") // its revisions
		n.addScale(s, f)
	case vedette.Kind{Group: "apps", Name: "StatefulSet"}:
		s.add(rule{namespace: f.Namespace, group: "apps", resource: "controllerrevisions"}, "list")
		n.addScale(s, f)
	case vedette.Kind{Group: "apps", Name: "DaemonSet"}:
		s.add(rule{namespace: f.Namespace, group: "apps", resource: "controllerrevisions"}, "list")
	case vedette.Kind{Group: "apps", Name: "ReplicaSet"}:
		n.addScale(s, f)
	}
}

func (n Needs) addScale(s *ruleSet, f watch.FeedSpec) {
	if !n.ReadOnly {
		s.add(rule{namespace: f.Namespace, group: "apps", resource: f.Resource.Plural + "/scale"}, "patch")
	}
}

// addClusterRules adds what the agent reads of the cluster itself: the uid of kube-system, which
// identifies it, the names of its namespaces, and changes of its custom kinds.
func (n Needs) addClusterRules(s *ruleSet) {
	if n.OnlyNamespaced {
		return
	}
	if !s.has("", "namespaces", "get") {
		s.add(rule{resource: "namespaces", name: "kube-system"}, "get")
	}
	s.add(rule{resource: "namespaces"}, "list")
	s.add(rule{group: "apiextensions.k8s.io", resource: "customresourcedefinitions"}, watchVerbs...)
	s.add(rule{group: "apiregistration.k8s.io", resource: "apiservices"}, watchVerbs...)
}

func (n Needs) addEvents(s *ruleSet) {
	namespaces := n.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		s.add(rule{namespace: namespace, resource: "events"}, "list")
	}
}
