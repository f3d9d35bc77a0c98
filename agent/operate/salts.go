package operate

import (
	"slices"
	"sync"
)

// salts are those of the series that versions were asked of lately. Versions of
// one series that share a salt are compared by one derivation. To have forgotten
// one costs another derivation and nothing else.
type salts struct {
	mu sync.Mutex
	by map[series][]byte
}

const mostSalts = 1000

// keep notes the salt of a content annotation, where it is one.
func (s *salts) keep(of series, content hidden) {
	d, ok := parseDigest(content)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil || len(s.by) >= mostSalts {
		s.by = map[series][]byte{}
	}
	s.by[of] = slices.Clone(d.salt)
}

// of returns the salt of a series, nil where none is known.
func (s *salts) of(of series) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[of]
}
