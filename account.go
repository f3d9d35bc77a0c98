package vedette

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Cluster is the identity of the cluster behind an account.
type Cluster struct {
	// UID is the uid of the kube-system namespace. It is the only name of a cluster
	// that survives new certificates, new addresses and new API servers. It is empty if
	// RBAC hides it; then Host and Fingerprint together identify the cluster.
	UID         string
	Host        string // of the API server, "https://10.0.0.1:6443"
	Fingerprint string // SHA-256 of the API server's certificate, hex pairs joined by colons; empty without TLS
	Version     string // "v1.36.3"
}

// Same reports whether two descriptions mean one cluster. If both have a uid, only the
// uids are compared, because addresses and certificates change. Otherwise both the
// address and the certificate must be known and equal. The address alone is not enough
// because within a cluster, the API server of every cluster has the same address.
func (c Cluster) Same(other Cluster) bool {
	if c.UID != "" && other.UID != "" {
		return c.UID == other.UID
	}
	return c.Identifiable() && c.Host == other.Host && c.Fingerprint == other.Fingerprint
}

// Identifiable reports whether Same can distinguish the cluster from others.
func (c Cluster) Identifiable() bool {
	return c.UID != "" || c.Host != "" && c.Fingerprint != ""
}

// String returns "the cluster with uid 6e1c… at https://10.0.0.1:6443", for messages
// about conflicts.
func (c Cluster) String() string {
	if c.UID == "" {
		return fmt.Sprintf("the cluster at %s (certificate %s)", c.Host, c.Fingerprint)
	}
	return fmt.Sprintf("the cluster with uid %s at %s", c.UID, c.Host)
}

// Account is one cluster under the name that users know, as its agent registers it.
type Account struct {
	Name       AccountName
	Cluster    Cluster
	Properties Properties
	Namespaces []string // known at registration; nil if they could not be listed
	// Shape is a hash of everything that decides how objects look besides the objects
	// themselves: redaction, projections, selection. If an account registers with
	// another shape, its stored objects are stale although their resourceVersions are
	// current. It is compared for equality only.
	Shape string
}

// Properties are the settings of an account that the server and Spinnaker use. They are
// stored as one JSON document.
type Properties struct {
	Environment            string           `json:"environment,omitempty"`
	AccountType            string           `json:"accountType,omitempty"`
	Permissions            *Permissions     `json:"permissions,omitempty"` // nil for an account that is open to everyone
	Kinds                  []string         `json:"kinds,omitempty"`
	OmitKinds              []string         `json:"omitKinds,omitempty"`
	Namespaces             []string         `json:"namespaces,omitempty"`
	OmitNamespaces         []string         `json:"omitNamespaces,omitempty"`
	OnlySpinnakerManaged   bool             `json:"onlySpinnakerManaged,omitempty"`
	CustomResources        []CustomResource `json:"customResources,omitempty"`
	CacheAllRelationships  bool             `json:"cacheAllApplicationRelationships,omitempty"`
	RawResourceExpressions json.RawMessage  `json:"rawResourcesEndpointConfig,omitempty"`
	// CheckReadiness makes a deployment wait for kinds that Clouddriver considers
	// stable as soon as they exist.
	CheckReadiness bool `json:"checkReadiness,omitempty"`
	// DefaultNamespace is the namespace of objects without one, as the account's
	// kubeconfig context has it; empty means "default".
	DefaultNamespace string `json:"defaultNamespace,omitempty"`
	// Debug makes a server that is configured for it record, with Spinnaker's tasks,
	// the result of each change of the account's cluster.
	Debug bool `json:"debug,omitempty"`
	// Metrics decides whether the resource usage of containers is shown with their pod;
	// nil means true.
	Metrics *bool `json:"metrics,omitempty"`
}

// ShowsMetrics returns Metrics, or its default.
func (p Properties) ShowsMetrics() bool { return p.Metrics == nil || *p.Metrics }

// NamespaceOrDefault returns a namespace, or else that of objects without one.
func (p Properties) NamespaceOrDefault(namespace string) string {
	return cmp.Or(namespace, p.DefaultNamespace, "default")
}

// CustomResource configures how a custom kind is treated.
type CustomResource struct {
	KubernetesKind string `json:"kubernetesKind"`
	SpinnakerKind  string `json:"spinnakerKind,omitempty"`
	DeployPriority string `json:"deployPriority,omitempty"`
	Versioned      bool   `json:"versioned,omitempty"`
	Namespaced     *bool  `json:"namespaced,omitempty"`
}

// Permissions are the roles that may use an account. If one list has roles, an empty
// list does not restrict its own permission. An account is open to everyone only if it
// has no Permissions at all.
type Permissions struct {
	Read    []string `json:"READ,omitempty"`
	Write   []string `json:"WRITE,omitempty"`
	Execute []string `json:"EXECUTE,omitempty"`
}

// AllowsMoreThan reports whether the permissions may admit a user that others exclude. Both must be Sorted.
// If that depends on the meaning of an empty list, it returns true, because a wrong
// false would open an account.
func (p *Permissions) AllowsMoreThan(others *Permissions) bool {
	if p == nil || others == nil {
		return others != nil
	}
	return allowsMore(p.Read, others.Read) || allowsMore(p.Write, others.Write) || allowsMore(p.Execute, others.Execute)
}

// allowsMore compares sorted roles, which takes little time: an agent may name tens of thousands.
func allowsMore(roles, others []string) bool {
	if len(roles) == 0 {
		return len(others) > 0
	}
	for _, role := range roles {
		for len(others) > 0 && others[0] < role {
			others = others[1:]
		}
		if len(others) == 0 || others[0] != role {
			return true
		}
	}
	return false
}

// Sorted returns the permissions with sorted roles, as AllowsMoreThan needs them.
func (p *Permissions) Sorted() *Permissions {
	if p == nil {
		return nil
	}
	return &Permissions{Read: sorted(p.Read), Write: sorted(p.Write), Execute: sorted(p.Execute)}
}

func sorted(roles []string) []string {
	if slices.IsSorted(roles) {
		return roles
	}
	return slices.Sorted(slices.Values(roles))
}

// Count returns how many roles there are, with those that are in several lists.
func (p *Permissions) Count() int {
	if p == nil {
		return 0
	}
	return len(p.Read) + len(p.Write) + len(p.Execute)
}

// String returns "READ [dev], WRITE [ops]", or "open to everyone".
func (p *Permissions) String() string {
	if p == nil {
		return "open to everyone"
	}
	var parts []string
	for _, group := range []struct {
		name  string
		roles []string
	}{{"READ", p.Read}, {"WRITE", p.Write}, {"EXECUTE", p.Execute}} {
		if len(group.roles) > 0 {
			parts = append(parts, fmt.Sprintf("%s [%s]", group.name, strings.Join(group.roles, ", ")))
		}
	}
	return strings.Join(parts, ", ")
}

// Normalize lower-cases roles, because Fiat compares them in lower case. It rejects a
// role that is empty or contains white space: the predecessor silently dropped a list
// with such a role and opened the account to everyone.
func (p *Permissions) Normalize() error {
	for permission, roles := range map[string][]string{"READ": p.Read, "WRITE": p.Write, "EXECUTE": p.Execute} {
		for i, role := range roles {
			if role == "" || strings.ContainsAny(role, " \t\r\n") {
				return Errorf(Invalid, "permissions.%s has the role %q: a role must not be empty or contain white space", permission, role)
			}
			roles[i] = strings.ToLower(role)
		}
	}
	return nil
}
