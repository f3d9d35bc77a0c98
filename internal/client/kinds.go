package client

import (
	"context"
	"strings"
)

// ServedKinds is what clusters serve.
type ServedKinds struct {
	Items    []ServedKind
	Accounts int           // that were asked
	Unknown  []AccountNote // whose clusters could not say what they serve
}

// ServedKind is a kind that at least one cluster serves.
type ServedKind struct {
	Name                          string // that the request has for it
	Kind, Group, Version          string // the kind as Deployment.apps
	RequestedVersion              string // that the name contains
	Versions                      []ServedVersion
	Plural, Singular              string
	ShortNames, Categories, Verbs []string
	Namespaced, IsCategory        bool
	AccountCount, Live            int
	NotLive, NotCached            []AccountNote
}

// ServedVersion is a version, and the accounts whose clusters prefer it: the first hundred.
type ServedVersion struct {
	Version      string
	AccountCount int
	Accounts     []string
}

// AccountNote says why something is not known of an account, and whether its cluster can be asked.
type AccountNote struct {
	Account, Message string
	Connected        bool
}

// IsCached reports whether an agent reports the kind.
func (k ServedKind) IsCached() bool { return k.Live+len(k.NotLive) > 0 }

// APIVersion returns the version that operations must name; empty for the version that the cluster prefers.
func (k ServedKind) APIVersion() string {
	switch {
	case k.RequestedVersion == "":
		return ""
	case k.Group == "":
		return k.RequestedVersion
	}
	return k.Group + "/" + k.RequestedVersion
}

// ServedKinds returns what names mean in the clusters of the accounts that match a pattern, or all kinds without names. The
// namespace decides whether an agent reports the kind there; empty means all.
func (c *Client) ServedKinds(ctx context.Context, account, namespace string, names ...string) (ServedKinds, error) {
	v := nonEmpty(map[string]string{"account": account, "namespace": namespace, "name": strings.Join(names, ",")})
	var served ServedKinds
	err := c.get(ctx, "/served-kinds", v, &served)
	return served, err
}
