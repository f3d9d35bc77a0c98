package vedette

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Cluster says which cluster stands behind an account.
type Cluster struct {
	// UID is the uid of the kube-system namespace: the one name of a cluster that
	// survives new certificates, new addresses and new API servers. Empty where
	// RBAC hides it; then Host and Fingerprint together stand in for it.
	UID         string
	Host        string // of the API server, "https://10.0.0.1:6443"
	Fingerprint string // SHA-256 of the API server's certificate, hex pairs joined by colons; empty without TLS
	Version     string // "v1.36.3"
}

// Same reports whether two descriptions mean one cluster. Where both know their
// uid nothing else counts: addresses and certificates change, clusters don't.
// Otherwise address and certificate must both be known and equal. The address
// alone tells nothing: within a cluster, the API server of every one of them is
// at the same address.
func (c Cluster) Same(other Cluster) bool {
	if c.UID != "" && other.UID != "" {
		return c.UID == other.UID
	}
	return c.Identifiable() && c.Host == other.Host && c.Fingerprint == other.Fingerprint
}

// Identifiable reports whether Same can tell the cluster from others.
func (c Cluster) Identifiable() bool {
	return c.UID != "" || c.Host != "" && c.Fingerprint != ""
}

// String returns "uid 6e1c… at https://10.0.0.1:6443", for messages on conflicts.
func (c Cluster) String() string {
	if c.UID == "" {
		return fmt.Sprintf("the cluster at %s (certificate %s)", c.Host, c.Fingerprint)
	}
	return fmt.Sprintf("the cluster with uid %s at %s", c.UID, c.Host)
}

// Account is one cluster under the name that users know it by, as its agent
// registers it.
type Account struct {
	Name       AccountName
	Cluster    Cluster
	Properties Properties
	Namespaces []string // known at registration; nil where they could not be listed
	// Shape stands for all that decides how objects look besides the objects
	// themselves: what is redacted, lifted and left out. Where an account comes
	// with another shape than before, what is stored of it is stale, though its
	// resourceVersions are not. It is compared for equality only.
	Shape string
}

// Properties are the settings of an account that mean something to the server
// and to Spinnaker. They are kept as one JSON document.
type Properties struct {
	Environment            string           `json:"environment,omitempty"`
	AccountType            string           `json:"accountType,omitempty"`
	Permissions            *Permissions     `json:"permissions,omitempty"` // nil: open to everyone
	Kinds                  []string         `json:"kinds,omitempty"`
	OmitKinds              []string         `json:"omitKinds,omitempty"`
	Namespaces             []string         `json:"namespaces,omitempty"`
	OmitNamespaces         []string         `json:"omitNamespaces,omitempty"`
	OnlySpinnakerManaged   bool             `json:"onlySpinnakerManaged,omitempty"`
	CustomResources        []CustomResource `json:"customResources,omitempty"`
	CacheAllRelationships  bool             `json:"cacheAllApplicationRelationships,omitempty"`
	RawResourceExpressions json.RawMessage  `json:"rawResourcesEndpointConfig,omitempty"`
	// CheckReadiness makes a deployment wait for kinds that Clouddriver calls
	// stable as soon as they are there.
	CheckReadiness bool `json:"checkReadiness,omitempty"`
	// Debug makes a server that is told to keep with Spinnaker's tasks what became of
	// each change of the account's cluster.
	Debug bool `json:"debug,omitempty"`
	// Metrics says whether what containers use is shown with their pod; nil means
	// that it is.
	Metrics *bool `json:"metrics,omitempty"`
}

// ShowsMetrics is Metrics with its default.
func (p Properties) ShowsMetrics() bool { return p.Metrics == nil || *p.Metrics }

// CustomResource is how an account wants a custom kind to be treated.
type CustomResource struct {
	KubernetesKind string `json:"kubernetesKind"`
	SpinnakerKind  string `json:"spinnakerKind,omitempty"`
	DeployPriority string `json:"deployPriority,omitempty"`
	Versioned      bool   `json:"versioned,omitempty"`
	Namespaced     *bool  `json:"namespaced,omitempty"`
}

// Permissions are the roles that may use an account. A list that is nil or
// empty restricts nothing of its sort where another list restricts; an account
// is open only where it has no Permissions at all.
type Permissions struct {
	Read    []string `json:"READ,omitempty"`
	Write   []string `json:"WRITE,omitempty"`
	Execute []string `json:"EXECUTE,omitempty"`
}

// AllowsMoreThan reports whether the permissions may let in somebody whom others keep
// out. Where that depends on how an empty list is read, it may.
func (p *Permissions) AllowsMoreThan(others *Permissions) bool {
	if p == nil || others == nil {
		return others != nil
	}
	return allowsMore(p.Read, others.Read) || allowsMore(p.Write, others.Write) || allowsMore(p.Execute, others.Execute)
}

func allowsMore(roles, others []string) bool {
	isAdded := func(role string) bool { return !slices.Contains(others, role) }
	return slices.ContainsFunc(roles, isAdded) || len(roles) == 0 && len(others) > 0
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

// Normalize lower-cases roles, as Fiat compares them, and refuses a role that is
// empty or holds white space: the predecessor dropped such a list silently and
// opened the account to everyone.
func (p *Permissions) Normalize() error {
	for permission, roles := range map[string][]string{"READ": p.Read, "WRITE": p.Write, "EXECUTE": p.Execute} {
		for i, role := range roles {
			if role == "" || strings.ContainsAny(role, " \t\r\n") {
				return Errorf(Invalid, "permissions.%s names the role %q: a role must not be empty or hold white space", permission, role)
			}
			roles[i] = strings.ToLower(role)
		}
	}
	return nil
}
