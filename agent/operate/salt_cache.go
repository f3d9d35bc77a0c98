package operate

import (
	"slices"
	"sync"
)

// saltCache are those of the series that versions were asked of lately. Versions of
// one series that share a salt are compared by one derivation. To have forgotten
// one costs another derivation and nothing else.
type saltCache struct {
	mu       sync.Mutex
	bySeries map[series][]byte
}

const maxSalts = 1000

// put notes the salt of a content annotation, where it is one.
func (s *saltCache) put(key series, annotation sensitiveBytes) {
	d, ok := parseDigest(annotation)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bySeries == nil || len(s.bySeries) >= maxSalts {
		s.bySeries = map[series][]byte{}
	}
	s.bySeries[key] = slices.Clone(d.salt)
}

// get returns the salt of a series, nil where none is known.
func (s *saltCache) get(of series) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bySeries[of]
}
