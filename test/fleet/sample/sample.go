// Package sample makes the objects of simulated clusters: what an API server would send
// of a company's workloads. An object is a function of its cluster's seed, its
// kind, its number and its version, so nobody has to keep it, and two programs
// that know the seed mean the same objects.
//
// Package corpus makes richer objects one after the other; these can be had in
// any order, at any version, at no cost but a microsecond of writing.
//
// The objects resemble each other as real ones do: pods of one application are
// alike but for names, addresses and identifiers, and applications differ in
// what they are called, configured with and allowed to use. A pod has about
// 7.7 KB, 4.8 KB without managedFields.
package sample

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/vedette-io/vedette"
)

// Cluster is one cluster's objects. It may be used by several goroutines.
type Cluster struct {
	seed  uint64
	apps  []app
	first int // of apps: the one that the cluster's application 0 is
}

// New returns the cluster of a seed. All clusters of a process share the
// applications that their own are drawn from.
func New(seed uint64) *Cluster {
	apps := allApps()
	return &Cluster{seed: mix(seed), apps: apps, first: int(mix(seed^0xa11) % uint64(len(apps)))}
}

// Kinds returns the kinds that there are objects of, as an API server tells of
// them. The caller must not change it.
func Kinds() []vedette.Resource { return resources }

// Resource returns one of Kinds by its kind, and whether it is among them.
func Resource(kind vedette.Kind) (vedette.Resource, bool) {
	i := slices.IndexFunc(resources, func(r vedette.Resource) bool { return r.Kind == kind })
	if i < 0 {
		return vedette.Resource{}, false
	}
	return resources[i], true
}

// Append appends an object's JSON, as an API server sends it in a watch: with
// kind and apiVersion, and with managedFields. The version is its
// resourceVersion; what changes with it is what changes in real objects when
// their status does. The kind must be one of Kinds.
func (c *Cluster) Append(dst []byte, kind vedette.Kind, i int, version uint64) []byte {
	o := c.object(kind, i, version)
	return o.fill(dst, allTemplates()[kind].whole)
}

// AppendMetadata appends the same object as PartialObjectMetadata.
func (c *Cluster) AppendMetadata(dst []byte, kind vedette.Kind, i int, version uint64) []byte {
	o := c.object(kind, i, version)
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`...)
	dst = o.fill(dst, allTemplates()[kind].metadata)
	return append(dst, '}')
}

// Key returns the name of an object.
func (c *Cluster) Key(kind vedette.Kind, i int) vedette.Key {
	o := c.object(kind, i, 0)
	return vedette.Key{Kind: kind, Namespace: string(o.namespace(nil)), Name: string(o.name(nil))}
}

// UID returns the uid of an object.
func (c *Cluster) UID(kind vedette.Kind, i int) string {
	return string(appendUID(nil, c.hash(kind, i, saltUID)))
}

// Creatable returns what can be posted to an API server to get the object: it
// without what only the API server may say. The status is apart, since it is
// written apart.
func (c *Cluster) Creatable(kind vedette.Kind, i int) (object, status []byte, err error) {
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(c.Append(nil, kind, i, 1), &whole); err != nil {
		return nil, nil, err
	}
	if status = whole["status"]; status != nil {
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

// removeMembers removes members of a member, where that is there.
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

// Namespaces is how many namespaces hold objects, those of Kubernetes itself
// included: the objects 0 to Namespaces-1 of kind Namespace.
var Namespaces = len(systemNamespaces) + len(teams)

// KubeSystem is the number of the namespace whose uid names a cluster.
const KubeSystem = 0

// compact is json.Compact of something that must be JSON.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		panic(err) // the templates are part of this program
	}
	return b.Bytes()
}
