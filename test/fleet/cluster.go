package fleet

import (
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/fleet/sample"
)

// Cluster is one simulated cluster. It is safe for concurrent use.
type Cluster struct {
	fleet      *Fleet
	sample     *sample.Cluster
	revision   atomic.Uint64
	registries []*registry
	etag       string
	hold       atomic.Pointer[chan struct{}] // closed by Release; nil while requests are answered
}

var namespaceKind = vedette.Kind{Name: "Namespace"}

func newCluster(f *Fleet, n uint64) (*Cluster, error) {
	c := &Cluster{fleet: f, sample: sample.New(f.cfg.Seed<<20 + n), etag: `"simulated"`}
	c.revision.Store(100)
	for _, r := range sample.Kinds() {
		objects, isWanted := f.cfg.Objects[r.Kind]
		if r.Kind == namespaceKind {
			objects, isWanted = max(objects, sample.Namespaces), true
		}
		if isWanted {
			c.registries = append(c.registries, newRegistry(r, &c.revision, objects, f.cfg.Window))
		}
	}
	for kind := range f.cfg.Objects {
		if c.registryOf(kind) == nil {
			return nil, fmt.Errorf("package sample has no objects of kind %s", kind)
		}
	}
	return c, nil
}

func (c *Cluster) registryOf(kind vedette.Kind) *registry {
	for _, s := range c.registries {
		if s.Kind == kind {
			return s
		}
	}
	return nil
}

// UID returns the uid of the cluster.
func (c *Cluster) UID() string { return c.sample.UID(namespaceKind, sample.KubeSystem) }

// Put creates or changes object number i, and returns its new resourceVersion.
func (c *Cluster) Put(kind vedette.Kind, i int) uint64 { return c.registryOf(kind).set(i, false) }

// Delete deletes object number i, and returns the resourceVersion of the deletion.
func (c *Cluster) Delete(kind vedette.Kind, i int) uint64 { return c.registryOf(kind).set(i, true) }

// Advance raises the resourceVersion without a change, as a change of a kind does that nobody watches. The next bookmarks show it.
func (c *Cluster) Advance() { c.revision.Add(1) }

// Expire makes every earlier resourceVersion too old for a watch.
func (c *Cluster) Expire() {
	for _, s := range c.registries {
		s.expire()
	}
}

// Hold makes requests wait until Release, like an API server that hangs.
func (c *Cluster) Hold() {
	hold := make(chan struct{})
	c.hold.CompareAndSwap(nil, &hold)
}

// Release lets waiting and later requests continue.
func (c *Cluster) Release() {
	if hold := c.hold.Swap(nil); hold != nil {
		close(*hold)
	}
}

// Count returns the number of objects, including those of kind Namespace.
func (c *Cluster) Count() (n int) {
	for _, s := range c.registries {
		n += s.count()
	}
	return n
}

// Kinds returns the kinds that the cluster has objects of.
func (c *Cluster) Kinds() iter.Seq[vedette.Kind] {
	return func(yield func(vedette.Kind) bool) {
		for _, s := range c.registries {
			if !yield(s.Kind) {
				return
			}
		}
	}
}

// Objects returns the current objects of a kind: key, uid and resourceVersion.
func (c *Cluster) Objects(kind vedette.Kind) iter.Seq[vedette.Object] {
	objects, _, _, _, err := c.registryOf(kind).page(0, 0, 0, func(int) bool { return true })
	if err != nil {
		panic(err) // cannot happen: the current revision has not expired
	}
	return func(yield func(vedette.Object) bool) {
		for _, o := range objects {
			object := vedette.Object{Key: c.sample.Key(kind, o.i), UID: c.sample.UID(kind, o.i), ResourceVersion: fmt.Sprint(o.version.revision())}
			if !yield(object) {
				return
			}
		}
	}
}

// changeRandom makes change number n of a fleet, which depends only on n.
func (c *Cluster) changeRandom(n int) {
	h := uint64(n)*0x9e3779b97f4a7c15 + 0x1234567
	h ^= h >> 29
	at := int(h>>8) & 0x7fffffff % max(1, c.Count()-c.registryOf(namespaceKind).count())
	for _, s := range c.registries {
		if s.Kind == namespaceKind {
			continue
		}
		if objects := s.count(); at >= objects {
			at -= objects
			continue
		}
		s.changeAt(at, h%20)
		return
	}
}

func (s *registry) changeAt(at int, action uint64) {
	s.mu.Lock()
	size := len(s.versions)
	exists := s.versions[at].exists()
	s.mu.Unlock()
	switch {
	case action == 0:
		s.set(size, false)
	case action == 1 && exists:
		s.set(at, true)
	default:
		s.set(at, false)
	}
}

// serve answers a request to the cluster's API server.
func (c *Cluster) serve(w http.ResponseWriter, r *http.Request, path string) {
	if hold := c.hold.Load(); hold != nil {
		select {
		case <-*hold:
		case <-r.Context().Done():
			return
		}
	}
	if r.Method != http.MethodGet && r.Method != http.MethodPatch {
		writeStatus(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "simulated clusters support only reading and patching objects")
		return
	}
	switch path {
	case "/version":
		c.fleet.counts.gets.Add(1)
		writeJSON(w, map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.0-simulated"})
	case "/api", "/apis":
		c.discovery(w, r, path)
	default:
		c.resource(w, r, strings.Split(strings.Trim(path, "/"), "/"))
	}
}

// resource serves /api/v1/… and /apis/GROUP/VERSION/….
func (c *Cluster) resource(w http.ResponseWriter, r *http.Request, path []string) {
	group := ""
	if path[0] == "apis" && len(path) > 1 {
		group, path = path[1], path[1:]
	}
	if len(path) < 3 {
		writeStatus(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		return
	}
	version, path := path[1], path[2:]
	q := query{cluster: c, values: r.URL.Query()}
	if path[0] == "namespaces" && len(path) > 2 {
		q.namespace, path = path[1], path[2:]
	}
	for _, s := range c.registries {
		if s.Kind.Group == group && s.Version == version && s.Plural == path[0] {
			q.registry = s
			q.serve(w, r, path[1:])
			return
		}
	}
	writeStatus(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
}
