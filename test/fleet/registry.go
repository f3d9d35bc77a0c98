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

// registry is what a cluster keeps of one kind: the versions of its objects, by
// number, and its last changes.
type registry struct {
	vedette.Resource
	revision *atomic.Uint64 // of the cluster; grows with each change of any kind
	window   int

	mu       sync.Mutex
	versions []version
	live     int // objects that exist
	log      []change
	dropped  uint64         // the last revision that has left the log
	changed  chan struct{}  // closed and replaced at each change
	numbers  map[string]int // of objects by namespace and name; grows when it is asked
}

// version is the revision of an object's last change, and whether that was its
// deletion; 0 is an object that never was.
type version uint64

const gone version = 1 << 63

func (v version) revision() uint64 { return uint64(v &^ gone) }
func (v version) exists() bool     { return v != 0 && v&gone == 0 }

// change is one entry of a log.
type change struct {
	number int
	after  version
	before version
}

// eventType is the type of the watch event that tells of a change.
func (c change) eventType() string {
	switch {
	case !c.after.exists():
		return "DELETED"
	case c.before.exists():
		return "MODIFIED"
	}
	return "ADDED"
}

// errExpired says that a revision is too long ago.
var errExpired = errors.New("the revision has left the log")

func newRegistry(r vedette.Resource, revision *atomic.Uint64, objects, window int) *registry {
	s := &registry{Resource: r, revision: revision, window: window, changed: make(chan struct{})}
	s.versions, s.live = make([]version, objects), objects
	for i := range s.versions {
		s.versions[i] = version(revision.Add(1))
	}
	s.dropped = revision.Load()
	return s
}

// set gives an object a new version. An object whose number is new is created.
func (s *registry) set(i int, deleted bool) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setLocked(i, deleted)
}

// change gives an object that exists a new version, and reports whether it does.
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

// expire empties the log, as an API server's is after a restart.
func (s *registry) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped, s.log = s.revision.Load(), nil
}

// find returns the object of a name, and whether it exists. Clusters that nobody
// asks for single objects keep no names.
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

// object is a number with the version that it had.
type object struct {
	i       int
	version version
}

// page returns up to limit objects that want accepts, from a number on, as they
// were at a revision, and the number to go on from, or 0 at the end. Revision 0
// means now. A limit of 0 means all.
func (s *registry) page(at uint64, from, limit int, want func(i int) bool) (objects []object, revision uint64, next, remaining int, err error) {
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

// atLocked returns what an object was at a revision, by going back through its
// changes.
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

// afterLocked returns the place of the first change after a revision.
func (s *registry) afterLocked(revision uint64) int {
	return sort.Search(len(s.log), func(n int) bool { return s.log[n].after.revision() > revision })
}

// since returns the changes after a revision, a copy, what to wait for where
// there are none, and up to which revision there are none beside them.
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
