package write

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/attributes"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// derivedColumns depend only on the object, so they are computed before the account is locked.
type derivedColumns struct {
	catalog.ClusterKey
	managed    bool
	owner      []byte // packed uid; empty for none
	attributes []byte
	head, body []byte // compressed
}

// deriveColumns returns all columns but the compressed ones.
func deriveColumns(o *vedette.Object) derivedColumns {
	a, m := attributes.FromObject(o), vedette.MonikerOf(o.Key, o.Annotations)
	m.App, m.Cluster = sqldb.Sanitize(m.App, sqldb.MaxApplication), sqldb.Sanitize(m.Cluster, sqldb.MaxCluster)
	if m.Cluster == catalog.Unclustered {
		m.Cluster = "\uFFFD"
	}
	d := derivedColumns{ClusterKey: catalog.ClusterKey{Application: m.App}, managed: a.Managed, owner: []byte{}}
	if len(a.Owner.UID) <= sqldb.MaxUID { // no object with a longer uid is stored
		d.owner = codec.PackUID(a.Owner.UID)
	}
	d.attributes = attributes.Append(make([]byte, 0, 96), o.Name, &a, &m, len(d.owner))
	switch {
	case a.Ignored:
	case attributes.IsClusterMember(o.Kind):
		d.Cluster = m.Cluster
	case attributes.IsApplicationMember(o.Kind):
		d.Cluster = catalog.Unclustered
	}
	return d
}
