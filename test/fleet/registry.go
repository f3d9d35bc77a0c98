package fleet

import (
	"errors"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/fleet/sample"
)

// registry holds the objects of one kind: their versions by number, and the last changes.
type registry struct {
	vedette.Resource
	revision *atomic.Uint64 // of the cluster; increases with each change of any kind
	window   int

	mu       sync.Mutex
	versions []version
	live     int // number of existing objects
	log      []change
	dropped  uint64         // the last revision that was dropped from the log
	changed  chan struct{}  // closed and replaced at each change
	numbers  map[string]int // of objects by namespace and name; filled on demand
}

// version is the revision of an object's last change, and whether it deleted the object. 0 means
// that the object never existed.
type version uint64

const gone version = 1 << 63

func (v version) revision() uint64 { return uint64(v &^ gone) }
func (v version) exists() bool     { return v != 0 && v&gone == 0 }

// change is one entry of the log.
type change struct {
	number int
	after  version
	before version
}

// eventType returns the type of the change's watch event.
func (c change) eventType() string {
	switch {
	case !c.after.exists():
		return "DELETED"
	case c.before.exists():
		return "MODIFIED"
	}
	return "ADDED"
}

// errExpired says that a revision is no longer in the log.
var errExpired = errors.New("the revision is no longer in the log")

func newRegistry(r vedette.Resource, revision *atomic.Uint64, objects, window int) *registry {
	s := &registry{Resource: r, revision: revision, window: window, changed: make(chan struct{})}
	s.versions, s.live = make([]version, objects), objects
	for i := range s.versions {
		s.versions[i] = version(revision.Add(1))
	}
	s.dropped = revision.Load()
	return s
}

// set gives an object a new version, and creates it if it does not exist.
func (s *registry) set(i int, deleted bool) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setLocked(i, deleted)
}

// change gives an existing object a new version, and reports whether it exists.
func (s *registry) change(i int) (revision uint64, exists bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.versions[i].exists() {
		return 0, false
	}
	return s.setLocked(i, false), true
}

func (s *registry) setLocked(i int, deleted bool) uint64 {
	for len(s.versions) <= i {
		s.versions = append(s.versions, 0)
	}
	after := version(s.revision.Add(1))
	if deleted {
		after |= gone
	}
	before := s.versions[i]
	s.versions[i] = after
	s.live += countIf(after) - countIf(before)
	s.appendLog(change{number: i, after: after, before: before})
	close(s.changed)
	s.changed = make(chan struct{})
	return after.revision()
}

func countIf(v version) int {
	if v.exists() {
		return 1
	}
	return 0
}

func (s *registry) appendLog(c change) {
	s.log = append(s.log, c)
	if excess := len(s.log) - s.window; excess > s.window/2 {
		s.dropped = s.log[excess-1].after.revision()
		s.log = slices.Clone(s.log[excess:])
	}
}

// expire empties the log, like a restart of an API server.
func (s *registry) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped, s.log = s.revision.Load(), nil
}

// find returns the object with a name, and whether it exists. Names are indexed at the first call,
// because most clusters never need them.
func (s *registry) find(c *sample.Cluster, namespace, name string) (object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.numbers == nil {
		s.numbers = map[string]int{}
	}
	for i := len(s.numbers); i < len(s.versions); i++ {
		key := c.Key(s.Kind, i)
		s.numbers[key.Namespace+"/"+key.Name] = i
	}
	i, known := s.numbers[namespace+"/"+name]
	if !known || !s.versions[i].exists() {
		return object{}, false
	}
	return object{i, s.versions[i]}, true
}

// object is a number and a version of the object.
type object struct {
	i       int
	version version
}

// page returns up to limit objects that want accepts, starting at a number, as they were at a
// revision. It also returns the number of the next object, or 0 at the end. Revision 0 means now,
// limit 0 means all.
func (s *registry) page(at uint64, from, limit int, want func(i int) bool) (objects []object, revision uint64, next, remaining int,
	err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at == 0 {
		at = s.revision.Load()
	}
	for i := from; i < len(s.versions); i++ {
		v, err := s.atLocked(i, at)
		if err != nil {
			return nil, 0, 0, 0, err
		}
		if !v.exists() || !want(i) {
			continue
		}
		if limit > 0 && len(objects) == limit {
			return objects, at, i, len(s.versions) - i, nil
		}
		objects = append(objects, object{i, v})
	}
	return objects, at, 0, 0, nil
}

// atLocked returns an object's version at a revision, by following its changes backwards.
func (s *registry) atLocked(i int, at uint64) (version, error) {
	v := s.versions[i]
	for v.revision() > at {
		index := s.afterLocked(v.revision() - 1)
		if index == len(s.log) || s.log[index].after != v {
			return 0, errExpired
		}
		v = s.log[index].before
	}
	return v, nil
}

// afterLocked returns the index of the first change after a revision.
func (s *registry) afterLocked(revision uint64) int {
	return sort.Search(len(s.log), func(n int) bool { return s.log[n].after.revision() > revision })
}

// since returns a copy of the changes after a revision, the revision up to which these are
// complete, and a channel that is closed at the next change.
func (s *registry) since(revision uint64) (changes []change, more <-chan struct{}, upTo uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision < s.dropped {
		return nil, nil, 0, errExpired
	}
	changes = slices.Clone(s.log[s.afterLocked(revision):])
	return changes, s.changed, s.revision.Load(), nil
}

func (s *registry) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}
