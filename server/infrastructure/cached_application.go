package infrastructure

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sync/singleflight"
)

// CachedApplication is an application at one time, with what was made from it.
type CachedApplication struct {
	*Application
	reader   *Reader
	rows     *Rows // that it was built from
	state    atomic.Pointer[state]
	rowBytes int64 // estimated memory of the application
	// Rows are read many at a time, and none of them is released before all are. So rowBytes also
	// counts rows that others have replaced. It was wholeBytes when all rows were read.
	wholeBytes int64

	flights   singleflight.Group // of balancers
	deriving  singleflight.Group // of derived, by key
	balancers atomic.Pointer[[]*LoadBalancer]

	mu           sync.Mutex
	derived      map[string]Derived
	derivedBytes int64
}

// state is the state of the store that an application shows.
type state struct {
	began    uint64 // when it was read, in the order of the reader
	versions versions
	settings *Settings
	mark     uint64 // of the store's list of changed objects
}

// addBytes counts the memory of rows that were read for the application.
func (s *CachedApplication) addBytes(used int64) {
	s.rowBytes += used
	if s.wholeBytes == 0 {
		s.rowBytes = max(s.rowBytes, s.rows.bytes())
		s.wholeBytes = s.rowBytes
	}
}

// isSparse reports whether so many rows have been replaced that reading all of them saves memory.
func (s *CachedApplication) isSparse() bool {
	const slack = 1 << 20
	return s.rowBytes > 2*s.wholeBytes+slack || s.rowBytes > largeBytes
}

// isCurrent reports whether the application would be the same if it were built now.
func (s *CachedApplication) isCurrent(settings *Settings) bool {
	current := s.state.Load()
	return current.versions.isCurrent(s.reader.cfg.Store) && current.settings.sameViewsOf(settings, current.versions.namespaces)
}

// Derived is what was made from an application and is kept with it, for example an encoded response. It is read-only,
// because requests share it.
type Derived interface {
	Bytes() int64 // memory that it takes
}

// maxDerived limits what is kept of one application, whose keys callers choose.
const maxDerived = 64

// Derive returns what belongs to a key: what was made before, or else what derive makes, which is
// kept if the cache has memory for it. Callers with the same key must want the same.
// Concurrent calls with one key share one call of derive, and few run at a time: callers who
// come together after a change would otherwise fill the memory with equal results.
func Derive[T Derived](s *CachedApplication, key string, derive func() (T, error)) (T, error) {
	if kept, ok := s.kept(key).(T); ok {
		return kept, nil
	}
	made, err, _ := s.deriving.Do(key, func() (any, error) {
		if kept := s.kept(key); kept != nil { // it was made in between
			return kept, nil
		}
		s.reader.deriving <- struct{}{}
		defer func() { <-s.reader.deriving }()
		made, err := derive()
		if err == nil {
			s.keep(key, made)
		}
		return made, err
	})
	if err != nil {
		var none T
		return none, err //nolint:wrapcheck // it is the error of derive
	}
	return made.(T), nil
}

func (s *CachedApplication) kept(key string) Derived {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.derived[key]
}

func (s *CachedApplication) keep(key string, made Derived) {
	s.mu.Lock()
	size := int64(len(key)) + made.Bytes()
	grown := size
	if s.derived == nil || len(s.derived) >= maxDerived {
		grown -= s.derivedBytes
		s.derived, s.derivedBytes = map[string]Derived{}, 0
	}
	s.derived[key] = made
	s.derivedBytes += size
	s.mu.Unlock()
	s.reader.cache.grow(s, grown)
}

// bytes estimates the memory of the rows, and of what Build makes of them.
func (r *Rows) bytes() int64 {
	const built = 160 // of a server group or an instance
	var n int64
	for _, list := range [][]*Object{r.own, r.pods, r.replicaSets, r.services, pointers(r.Workloads), pointers(r.WorkloadPods)} {
		n += int64(len(list)) * (int64(unsafe.Sizeof(Object{})) + built)
		for _, o := range list {
			n += textBytes(o)
		}
	}
	return n
}

// textBytes estimates the texts of a row. Those that rows share are counted once for each.
func textBytes(o *Object) int64 {
	n := len(o.UID) + len(o.Name) + len(o.Owner.UID) + len(o.Owner.Name) + len(o.Moniker.Cluster)
	for _, list := range [][]string{o.Images, o.LoadBalancers, o.Attributes.Services} {
		for _, text := range slices.All(list) {
			n += len(text) + 16
		}
	}
	for _, labels := range []map[string]string{o.TemplateLabels, o.Selector} {
		for label, value := range labels {
			n += len(label) + len(value) + 48
		}
	}
	return int64(n + 32*len(o.Containers))
}
