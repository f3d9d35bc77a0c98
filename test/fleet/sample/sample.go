// Package sample generates the objects of simulated clusters: what an API server would send for a
// company's workloads. An object depends only on its cluster's seed, its kind, its number and its
// version. Therefore no program has to keep it, and two programs with the same seed have the same
// objects.
//
// Package corpus generates more varied objects one after the other. These objects can be generated
// in any order, at any version, in a microsecond each.
//
// The objects resemble each other as real ones do: pods of one application are equal except for
// names, addresses and identifiers, and applications differ in their names, configuration and
// permissions. A pod has about 7.7 KB, 4.8 KB without managedFields.
package sample

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/vedette-io/vedette"
)

// Cluster generates one cluster's objects. It is safe for concurrent use.
type Cluster struct {
	seed  uint64
	apps  []app
	first int // index in apps of the cluster's application 0
}

// New returns the cluster for a seed. All clusters share one set of applications.
func New(seed uint64) *Cluster {
	apps := allApps()
	return &Cluster{seed: mix(seed), apps: apps, first: int(mix(seed^0xa11) % uint64(len(apps)))}
}

// Kinds returns the kinds of the objects, as in an API server's discovery. The caller must not
// change it.
func Kinds() []vedette.Resource { return resources }

// Resource returns the element of Kinds with a kind, and whether there is one.
func Resource(kind vedette.Kind) (vedette.Resource, bool) {
	i := slices.IndexFunc(resources, func(r vedette.Resource) bool { return r.Kind == kind })
	if i < 0 {
		return vedette.Resource{}, false
	}
	return resources[i], true
}

// Append appends an object's JSON as in a watch event: with kind, apiVersion and managedFields. The
// version is its resourceVersion. The fields that depend on it are those that change in real
// objects with their status. The kind must be one of Kinds.
func (c *Cluster) Append(dst []byte, kind vedette.Kind, i int, version uint64) []byte {
	o := c.object(kind, i, version)
	return o.fill(dst, allTemplates()[kind].whole)
}

// AppendMetadata appends the object as PartialObjectMetadata.
func (c *Cluster) AppendMetadata(dst []byte, kind vedette.Kind, i int, version uint64) []byte {
	o := c.object(kind, i, version)
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`...)
	dst = o.fill(dst, allTemplates()[kind].metadata)
	return append(dst, '}')
}

// Key returns the key of an object.
func (c *Cluster) Key(kind vedette.Kind, i int) vedette.Key {
	o := c.object(kind, i, 0)
	return vedette.Key{Kind: kind, Namespace: string(o.namespace(nil)), Name: string(o.name(nil))}
}

// UID returns the uid of an object.
func (c *Cluster) UID(kind vedette.Kind, i int) string {
	return string(appendUID(nil, c.hash(kind, i, saltUID)))
}

// Creatable returns the object in the form in which it can be created, without the fields that only
// the API server sets, and its status, which is written separately.
func (c *Cluster) Creatable(kind vedette.Kind, i int) (object, status []byte, err error) {
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(c.Append(nil, kind, i, 1), &whole); err != nil {
		return nil, nil, err
	}
	status = whole["status"]
	if status != nil {
		status = []byte(`{"status":` + string(status) + `}`)
	}
	delete(whole, "status")
	for member, remove := range map[string][]string{
		"metadata": {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"},
		"spec":     {"clusterIP", "clusterIPs"},
	} {
		if err := removeMembers(whole, member, remove); err != nil {
			return nil, nil, err
		}
	}
	object, err = json.Marshal(whole)
	return object, status, err
}

// removeMembers removes members of a member, if that exists.
func removeMembers(whole map[string]json.RawMessage, member string, remove []string) error {
	raw := whole[member]
	if len(raw) == 0 {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	for _, name := range remove {
		delete(members, name)
	}
	raw, err := json.Marshal(members)
	whole[member] = raw
	return err
}

// Namespaces is the number of namespaces with objects, including those of Kubernetes itself: the
// objects 0 to Namespaces-1 of kind Namespace.
var Namespaces = len(systemNamespaces) + len(teams)

// KubeSystem is the number of the namespace whose uid identifies a cluster.
const KubeSystem = 0

// compact compacts JSON.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		panic(err) // cannot happen: the templates are part of this program
	}
	return b.Bytes()
}
