package upstream

import (
	"hash/maphash"
	"net/http"
	"sync"
	"time"
)

// requestSides remembers which side got the operations of a request that has a clientRequestId. Each side runs a repeated request
// once, but the account may have moved between two tries. It is safe for concurrent use.
type requestSides struct {
	seed maphash.Seed

	mu    sync.Mutex
	sides map[uint64]requestSide
}

type requestSide struct {
	isPassedOn bool
	at         time.Time
}

const (
	// sideMaxAge is how long requests are repeated. Orca repeats one that failed without an answer within minutes.
	sideMaxAge = time.Hour
	// maxSides bounds the memory; each takes about 100 bytes.
	maxSides = 20_000
)

func newRequestSides() *requestSides {
	return &requestSides{seed: maphash.MakeSeed(), sides: map[uint64]requestSide{}}
}

// decide returns whether a request with this body is passed on: as it was before, or else as it should be now.
// The function forgets the request, which has not reached the other side.
func (s *requestSides) decide(r *http.Request, body []byte, passOn bool) (isPassedOn bool, forget func()) {
	if r.URL.Query().Get("clientRequestId") == "" {
		return passOn, func() {}
	}
	id := s.digest(r, body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.sides[id]; ok && time.Since(known.at) < sideMaxAge {
		return known.isPassedOn, func() {}
	}
	if len(s.sides) >= maxSides {
		s.forget()
	}
	s.sides[id] = requestSide{passOn, time.Now()}
	return passOn, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sides, id)
	}
}

// notReachedKey is the key of the function that is called if a request that is passed on does not reach the upstream Clouddriver.
type notReachedKey struct{}

// digest identifies a request that is repeated as it is. Another one with its id would be decided like it otherwise, although its
// accounts are others.
func (s *requestSides) digest(r *http.Request, body []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, text := range []string{r.URL.RequestURI(), r.Header.Get("X-Spinnaker-User")} {
		_, _ = h.WriteString(text)
		_ = h.WriteByte(0)
	}
	_, _ = h.Write(body)
	return h.Sum64()
}

// forget removes what is too old, and a tenth of the rest if that is not enough.
func (s *requestSides) forget() {
	for id, known := range s.sides {
		if time.Since(known.at) >= sideMaxAge {
			delete(s.sides, id)
		}
	}
	for id := range s.sides {
		if len(s.sides) <= maxSides*9/10 {
			return
		}
		delete(s.sides, id)
	}
}
