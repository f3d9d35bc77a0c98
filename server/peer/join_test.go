package peer

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// joiningMembers are servers of which more appear.
type joiningMembers struct {
	mu      sync.Mutex
	keys    map[[32]byte]bool
	changed chan struct{}
}

func (*joiningMembers) Peer(vedette.ServerID) (Peer, bool) { return Peer{}, false }

func (m *joiningMembers) ByKey(key [32]byte) (Peer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Peer{Key: key}, m.keys[key]
}

func (m *joiningMembers) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

func (m *joiningMembers) join(key [32]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys[key] = true
	close(m.changed)
	m.changed = make(chan struct{})
}

// TestServersThatJustJoinedAreAwaited has a server call before its row was read, and a stranger that waits as long as it may.
func TestServersThatJustJoinedAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &joiningMembers{keys: map[[32]byte]bool{}, changed: make(chan struct{})}
		go func() {
			for n := range byte(3) {
				time.Sleep(200 * time.Millisecond)
				m.join([32]byte{n})
			}
		}()
		began := time.Now()
		if err := awaitKey(m, [32]byte{2}); err != nil || time.Since(began) != 600*time.Millisecond {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		began = time.Now()
		if err := awaitKey(m, [32]byte{1}); err != nil || time.Since(began) != 0 {
			t.Errorf("a server that runs: got %v after %v", err, time.Since(began))
		}
		if err := awaitKey(m, [32]byte{9}); !errors.Is(err, errUnknownKey) || time.Since(began) != joinWait {
			t.Errorf("a stranger: got %v after %v", err, time.Since(began))
		}
	})
}
