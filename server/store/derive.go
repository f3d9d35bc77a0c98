package store

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/attributes"
	"github.com/vedette-io/vedette/server/store/codec"
)

// derivedColumns depend only on the object, so they are computed before the account is locked.
type derivedColumns struct {
	clusterKey
	managed    bool
	owner      []byte // packed uid; empty for none
	attributes []byte
	head, body []byte // compressed
}

// deriveColumns returns all columns but the compressed ones.
func deriveColumns(o *vedette.Object) derivedColumns {
	a, m := attributes.Of(o), vedette.MonikerOf(o.Key, o.Annotations)
	m.App, m.Cluster = sanitize(m.App, maxApplication), sanitize(m.Cluster, maxCluster)
	if m.Cluster == unclustered {
		m.Cluster = "\uFFFD"
	}
	d := derivedColumns{clusterKey: clusterKey{application: m.App}, managed: a.Managed, owner: []byte{}}
	if len(a.Owner.UID) <= maxUID { // no object with a longer uid is stored
		d.owner = codec.PackUID(a.Owner.UID)
	}
	d.attributes = attributes.Append(make([]byte, 0, 96), o.Name, &a, &m, len(d.owner))
	switch {
	case a.Ignored:
	case attributes.IsClusterMember(o.Kind):
		d.cluster = m.Cluster
	case attributes.IsApplicationMember(o.Kind):
		d.cluster = unclustered
	}
	return d
}
