package coherence

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/store/commit"
)

// listener is a reader of live events. It is guarded by the mutex of its server.
type listener struct {
	awaits bool            // it waits for the other servers
	wants  map[string]bool // changes since then, by version; true if it has it
	isLost bool            // it was told that changes are missing
}

func (s *server) hasListeners() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.listeners) > 0
}

// listen starts a listener.
func (s *server) listen(ctx context.Context) *listener {
	l := &listener{awaits: true, wants: map[string]bool{}}
	s.mu.Lock()
	s.listeners[l] = true
	s.mu.Unlock()
	if s.AwaitChanges(ctx) != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.awaits = false
	return l
}

// end ends a listener.
func (s *server) end(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// tell tells the listeners what a server has changed.
func (s *server) tell(changes []commit.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listeners {
		for _, c := range changes {
			l.wants[c.Version] = true
		}
	}
}

// lose tells the listeners that changes are missing.
func (s *server) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listeners {
		l.isLost = true
	}
}

// hearsAll reports whether all other servers are connected and have answered.
func (s *server) hearsAll() bool {
	s.Coherence.mu.Lock()
	defer s.Coherence.mu.Unlock()
	for _, f := range s.followers {
		if f.since.IsZero() {
			return false
		}
	}
	return len(s.followers) == len(s.Current())-1
}

// change publishes a change, which all listeners want that have begun.
func (w *world) change(s *server, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, other := range w.servers {
		other.mu.Lock()
		for l := range other.listeners {
			if _, has := l.wants[version]; !has && !l.awaits && other != s {
				l.wants[version] = false
			}
		}
		other.mu.Unlock()
	}
	s.Publish(Entry{Changes: []commit.Change{{Version: version}}})
}

// TestListenersMissNothing has listeners that come and go, while messages are delayed and links are cut.
func TestListenersMissNothing(t *testing.T) {
	seeds := uint64(96)
	if testing.Short() {
		seeds = 24
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { listenTo(t, seed) })
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func listenTo(t *testing.T, seed uint64) {
	ctx, cancel := context.WithCancel(t.Context())
	w := newWorld(t, seed)
	delay := []time.Duration{time.Millisecond, 50 * time.Millisecond, 400 * time.Millisecond, 5 * time.Second}[seed%4]
	random := rand.New(rand.NewPCG(seed, 2))
	w.delays = func() time.Duration { return time.Duration(random.Int64N(int64(delay))) }
	for i := range 2 + int(seed%2) {
		w.join(ctx, fmt.Sprint("s", i))
	}
	var listening sync.WaitGroup
	var got, lost atomic.Int64
	pause, listeners := 200*time.Millisecond, 10
	if delay > Validity { // so that there are times without listeners
		pause, listeners = time.Second, 2
	}
	for n := range 600 {
		time.Sleep(time.Duration(w.random.Int64N(int64(pause))))
		s := w.any()
		switch dice := w.random.IntN(100); {
		case dice < listeners:
			span := time.Duration(w.random.Int64N(int64(2 * time.Second)))
			listening.Go(func() {
				l := s.listen(ctx)
				if l == nil {
					return
				}
				time.Sleep(span)
				s.mu.Lock() // what is published from now on is not wanted
				l.awaits = true
				s.mu.Unlock()
				time.Sleep(4 * delay) // for what is on its way
				s.end(l)
				if l.isLost || !s.hearsAll() { // it is told when they are connected again
					lost.Add(1)
					return
				}
				for version, has := range l.wants {
					if got.Add(1); !has {
						t.Errorf("the listener of %s misses change %s", s.token, version)
					}
				}
			})
		case dice == listeners && seed%3 == 0:
			name := s.token + " " + w.any().token
			w.mu.Lock()
			w.isCut[name] = !w.isCut[name]
			w.mu.Unlock()
		default:
			w.change(s, fmt.Sprint(n))
		}
	}
	w.mu.Lock()
	clear(w.isCut)
	w.mu.Unlock()
	listening.Wait()
	if got.Load() == 0 && seed%3 != 0 && delay < Validity {
		t.Errorf("nothing was heard; %d listeners lost changes", lost.Load())
	}
	cancel()
	synctest.Wait()
}
