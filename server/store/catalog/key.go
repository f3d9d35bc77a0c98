package catalog

import (
	"cmp"

	"github.com/vedette-io/vedette"
)

// Key is a vedette.Key with the id of its kind. Within an account it is the primary key of
// objects.
type Key struct {
	KindID          int64
	Namespace, Name string
}

// Compare orders keys as the primary key does.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.KindID, other.KindID), cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}

// NamespaceKind is the kind of namespaces, which readers of an account see.
var NamespaceKind = vedette.Kind{Name: "Namespace"}

// Feed is a vedette.Feed with the id of its kind.
type Feed struct {
	KindID    int64
	Namespace string
}

// The table clusters counts the objects of which Spinnaker's clusters consist, by account,
// application and cluster. Each transaction that changes objects changes the counts too.

// Unclustered counts the load balancers and security groups of an application, which are in no
// cluster. It sorts first. A cluster of that name gets another one.
const Unclustered = "\x01"

// ClusterKey is a cluster of an account. The cluster is empty for objects that count in none.
type ClusterKey struct{ Application, Cluster string }

// Compare orders keys by application and cluster.
func (k ClusterKey) Compare(other ClusterKey) int {
	return cmp.Or(cmp.Compare(k.Application, other.Application), cmp.Compare(k.Cluster, other.Cluster))
}
