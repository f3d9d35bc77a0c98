package vedette

import (
	"github.com/cespare/xxhash/v2"
)

// Key names one object within an account.
type Key struct {
	Kind      Kind
	Namespace string // empty for cluster-scoped kinds
	Name      string
}

// String returns "Pod default/web-0" or "Namespace default".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind.String() + " " + k.Name
	}
	return k.Kind.String() + " " + k.Namespace + "/" + k.Name
}

// Object is a Kubernetes object on its way from the API server to the store:
// a header of what the server filters and lists by, and the body that it does
// not look into. The agent lifts the header while it redacts.
type Object struct {
	Key
	UID             string
	ResourceVersion string
	APIVersion      string            // of the body, "apps/v1"
	Created         int64             // creationTimestamp, seconds since 1970; 0 where it has none
	Owner           Owner             // the controller, or else the first owner; zero where it has none
	Labels          map[string]string // all of them
	Annotations     map[string]string // those that a Projection asked for
	Summary         []byte            // a JSON object of what a Projection asked for; nil where nothing was found
	Body            []byte            // JSON, redacted, without managedFields
}

// Owner is an entry of an object's ownerReferences.
type Owner struct {
	Kind Kind
	Name string
	UID  string
}

// Digest folds an object's uid and resourceVersion into 64 bits. Agent and
// server compare digests in place of objects when a feed must be listed again:
// equal digests mean an equal object, but for odds of n²/2⁶⁵ among n objects.
func Digest(uid, resourceVersion string) uint64 {
	var buf [96]byte
	b := append(buf[:0], uid...)
	b = append(b, 0)
	b = append(b, resourceVersion...)
	return xxhash.Sum64(b)
}
