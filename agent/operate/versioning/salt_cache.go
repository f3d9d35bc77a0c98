package versioning

import (
	"crypto/rand"
	"slices"
	"sync"
)

// SaltCache holds the salts of series whose versions were chosen recently. Versions that share a
// salt are compared with one derivation, so a salt that is forgotten costs a second derivation,
// and nothing else. The zero value is ready to use, by several goroutines at once.
type SaltCache struct {
	mu       sync.Mutex
	bySeries map[Series][]byte
}

const maxSalts = 1000

// SaltFor returns the salt of a series, a new one if it is not known. The new one is kept, so that
// versions that are created at the same time share it.
func (s *SaltCache) SaltFor(series Series) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	salt := s.bySeries[series]
	if salt == nil {
		salt = make([]byte, saltBytes)
		_, _ = rand.Read(salt) // it never fails
		s.putLocked(series, salt)
	}
	return slices.Clone(salt)
}

// put stores the salt of a content annotation, if that is valid.
func (s *SaltCache) put(key Series, annotation sensitiveBytes) {
	d, ok := parseDigest(annotation)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(key, slices.Clone(d.salt))
}

func (s *SaltCache) putLocked(series Series, salt []byte) {
	if s.bySeries == nil || len(s.bySeries) >= maxSalts {
		s.bySeries = map[Series][]byte{}
	}
	s.bySeries[series] = salt
}

func (s *SaltCache) get(key Series) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bySeries[key]
}
