package vedette

import (
	"github.com/cespare/xxhash/v2"
)

// Key identifies one object within an account.
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

// Path returns "default/web-0" or "default", for objects of a known kind.
func (k Key) Path() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Object is a Kubernetes object on its way from the API server to the store: a header
// with the fields that the server filters and lists by, and a body that the server does
// not parse. The agent extracts the header while it redacts the object.
type Object struct {
	Key
	UID             string
	ResourceVersion string
	APIVersion      string            // of the body, "apps/v1"
	Created         int64             // creationTimestamp in seconds since 1970; 0 if it has none
	Owner           Owner             // the controller, or else the first owner; zero if it has none
	Labels          map[string]string // all labels
	Annotations     map[string]string // those with a prefix of HeaderAnnotations
	Summary         []byte            // the fields of the kind's Projection as a JSON object; nil if none exists
	Body            []byte            // JSON, redacted, without managedFields
}

// Owner is an entry of an object's ownerReferences.
type Owner struct {
	Kind Kind
	Name string
	UID  string
}

// Digest hashes an object's identity and resourceVersion into 64 bits. When a feed must be
// listed again, agent and server compare digests instead of objects. Equal digests mean
// equal objects, with a probability of error of n²/2⁶⁵ for n objects.
//
// The identity is the uid. Objects of some aggregated API servers have none; theirs is
// namespace and name.
func Digest(namespace, name, uid, resourceVersion string) uint64 {
	if uid != "" {
		return DigestWithoutName(uid, resourceVersion)
	}
	var buf [160]byte
	b := append(buf[:0], 0, 0)
	for _, s := range []string{namespace, name, resourceVersion} {
		b = append(b, s...)
		b = append(b, 0)
	}
	return xxhash.Sum64(b)
}

// DigestWithoutName is the Digest of older agents and servers. Objects without uid share it
// if they have the same resourceVersion.
func DigestWithoutName(uid, resourceVersion string) uint64 {
	var buf [96]byte
	b := append(buf[:0], uid...)
	b = append(b, 0)
	b = append(b, resourceVersion...)
	return xxhash.Sum64(b)
}

// Bucket returns the bucket of a digest: its highest bits.
func Bucket(digest uint64, bits int) uint64 { return digest >> (64 - bits) }

// HashName hashes the name of an object within a feed.
func HashName(namespace, name string) uint64 { return DigestWithoutName(namespace, name) }
