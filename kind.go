package vedette

import "strings"

// Kind is a Kubernetes kind without its version. Objects are stored by Kind because
// every version of a kind shows the same objects. The group is empty for the core API.
type Kind struct {
	Group string
	Name  string
}

// String returns "Pod" or "Deployment.apps", the form that Clouddriver and the
// predecessor use for kinds with a group.
func (k Kind) String() string {
	if k.Group == "" {
		return k.Name
	}
	return k.Name + "." + k.Group
}

// ParseKind parses the form that String returns. The name ends at the first dot, and
// the rest is the group. Case is preserved.
func ParseKind(s string) Kind {
	name, group, _ := strings.Cut(s, ".")
	return Kind{Group: group, Name: name}
}

// Resource is a kind as one API server serves it.
type Resource struct {
	Kind       Kind
	Version    string   // the preferred version, "v1"
	Plural     string   // "deployments", the path segment of URLs
	Singular   string   // "deployment", may be empty
	ShortNames []string // "deploy"
	Namespaced bool
}

// APIVersion returns "v1" or "apps/v1", as in a manifest.
func (r Resource) APIVersion() string {
	if r.Kind.Group == "" {
		return r.Version
	}
	return r.Kind.Group + "/" + r.Version
}

// Matches reports whether a name from a user means this resource: its kind, singular,
// plural or a short name in any case, alone or followed by a dot and the whole group. A
// name without a group matches resources of every group, so a caller that needs exactly
// one must check for a second match.
func (r Resource) Matches(name string) bool {
	name, group, qualified := strings.Cut(name, ".")
	if qualified && !strings.EqualFold(group, r.Kind.Group) {
		return false
	}
	return r.hasName(name) || r.hasShortName(name)
}

// PreferExact returns those of the resources that a name matches whose kind is exactly the name, as manifests
// write it: one group can have kinds that differ by case, or one that another kind has as a short name. If there
// is none, or if the resources are of several groups, it returns all of them.
func PreferExact(matching []Resource, name string) []Resource {
	name, _, _ = strings.Cut(name, ".")
	return preferExact(matching, name, func(r Resource) (Resource, []string) { return r, nil })
}

// DefaultKinds are the kinds that an agent caches if neither the server nor the account
// configures kinds. The list is the predecessor's cacheKinds, so that its users see the
// same objects. A name without a group means each kind of that name in the API groups
// of Kubernetes itself (IsNativeGroup).
var DefaultKinds = []string{
	"ReplicaSet", "Service", "Ingress", "DaemonSet", "Deployment", "Pod", "StatefulSet", "Job", "CronJob",
	"NetworkPolicy", "Namespace", "CustomResourceDefinition",
}

// IsNativeGroup reports whether an API group belongs to Kubernetes itself: the core
// group, the old groups without a dot (apps, batch, autoscaling, policy, extensions),
// and the groups below k8s.io that the API server defines, or once defined, without a
// CustomResourceDefinition.
func IsNativeGroup(group string) bool {
	if !strings.Contains(group, ".") {
		return true
	}
	return nativeGroups[group]
}

var nativeGroups = map[string]bool{
	"admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true,
	"authentication.k8s.io": true, "authorization.k8s.io": true, "certificates.k8s.io": true,
	"coordination.k8s.io": true, "discovery.k8s.io": true, "events.k8s.io": true,
	"flowcontrol.apiserver.k8s.io": true, "internal.apiserver.k8s.io": true, "networking.k8s.io": true,
	"node.k8s.io": true, "rbac.authorization.k8s.io": true, "resource.k8s.io": true,
	"scheduling.k8s.io": true, "settings.k8s.io": true, "storage.k8s.io": true, "storagemigration.k8s.io": true,
}
