package coherence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/membership"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/versions"
)

// world is servers that share a database with one number, which each of them keeps in memory.
type world struct {
	t      *testing.T
	random *rand.Rand

	mu       sync.Mutex
	servers  map[string]*server // by token
	stored   int
	known    int // the last number that a writer has made known to all
	readings int // from memory
	delays   func() time.Duration
	isCut    map[string]bool // links, as "a b"
}

type server struct {
	*Coherence
	w     *world
	token string

	mu     sync.Mutex
	cached int // 0 for nothing
	since  time.Time
	others membership.Servers
	change chan struct{}

	listeners map[*listener]bool
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), servers: map[string]*server{}, isCut: map[string]bool{}, stored: 1, known: 1,
		delays: func() time.Duration { return time.Millisecond }}
}

// join starts a server, which has a row from now on.
func (w *world) join(ctx context.Context, token string) *server {
	s := &server{w: w, token: token, change: make(chan struct{}), listeners: map[*listener]bool{}}
	s.Coherence = New(Config{Token: token, Servers: s, Open: s.open,
		Take:         func(e Entry) { s.forget(); s.tell(e.Changes) },
		TakeAll:      func() { s.forget(); s.lose() },
		WantsChanges: s.hasListeners, Log: slog.New(slog.DiscardHandler)})
	w.mu.Lock()
	w.servers[token] = s
	w.mu.Unlock()
	go func() {
		tick := time.NewTicker(500 * time.Millisecond)
		for ctx.Err() == nil {
			s.readServers()
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	go func() { _ = s.Run(ctx) }()
	return s
}

// readServers reads who has a row.
func (s *server) readServers() {
	began := time.Now()
	s.w.mu.Lock()
	all := membership.Servers{}
	for token := range s.w.servers {
		all[vedette.ServerID(token)] = sqldb.SharingServer{ID: vedette.ServerID(token), Token: token}
	}
	s.w.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.others = began, all
	close(s.change)
	s.change = make(chan struct{})
}

func (s *server) Current() membership.Servers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.others
}

func (s *server) CurrentSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since
}

func (s *server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.change
}

func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cached = 0
}

// write stores the next number, and makes it known to all.
func (s *server) write(ctx context.Context) {
	s.w.mu.Lock()
	s.w.stored++
	n := s.w.stored
	s.w.mu.Unlock()
	s.forget()
	s.Publish(Entry{Effect: &versions.Message{}})
	if s.Flush(ctx) != nil {
		return
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.known = max(s.w.known, n)
}

// read reads the number, from memory if the server is current.
func (s *server) read() {
	s.w.mu.Lock()
	known := s.w.known
	s.w.mu.Unlock()
	if s.IsCurrent() {
		s.mu.Lock()
		cached := s.cached
		s.mu.Unlock()
		if cached != 0 {
			s.w.mu.Lock()
			s.w.readings++
			s.w.mu.Unlock()
			if cached < known {
				s.w.t.Errorf("%s answers %d from memory, and %d was made known to all before", s.token, cached, known)
			}
			return
		}
	}
	s.mu.Lock() // what is taken in meanwhile is later
	defer s.mu.Unlock()
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.cached = s.w.stored
}

// link is a stream over a network with delays.
type link struct {
	ctx   context.Context
	world *world
	name  string
	pings chan timed[Ping]
	down  chan timed[Batch]
}

type timed[T any] struct {
	value T
	at    time.Time // of its arrival, at the earliest
}

func (l *link) Ping(p Ping) error {
	return deliver(l, l.pings, p)
}

func (l *link) Receive() (Batch, error) { return receive(l, l.down) }

func deliver[T any](l *link, to chan timed[T], value T) error {
	l.world.mu.Lock()
	d := l.world.delays()
	l.world.mu.Unlock()
	select {
	case to <- timed[T]{value, time.Now().Add(d)}:
		return nil
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
}

var errCut = errors.New("the link is cut")

func receive[T any](l *link, from chan timed[T]) (value T, err error) {
	select {
	case m := <-from:
		select {
		case <-time.After(time.Until(m.at)):
		case <-l.ctx.Done():
			return value, l.ctx.Err()
		}
		l.world.mu.Lock()
		cut := l.world.isCut[l.name]
		l.world.mu.Unlock()
		if cut {
			return value, errCut
		}
		return m.value, nil
	case <-l.ctx.Done():
		return value, l.ctx.Err()
	}
}

func (s *server) open(ctx context.Context, to sqldb.SharingServer) (Stream, error) {
	s.w.mu.Lock()
	other := s.w.servers[to.Token]
	name := s.token + " " + to.Token
	cut := s.w.isCut[name]
	s.w.mu.Unlock()
	if other == nil || cut {
		return nil, errCut
	}
	ctx, end := context.WithCancel(ctx)
	l := &link{ctx: ctx, world: s.w, name: name, pings: make(chan timed[Ping], 1000), down: make(chan timed[Batch], 1000)}
	r := other.NewReader()
	go func() {
		defer end() // both sides see it
		defer r.Close()
		for {
			p, err := receive(l, l.pings)
			if err != nil {
				return
			}
			r.Ping(p)
		}
	}()
	go func() {
		for {
			batch, err := r.Next(ctx, noReports)
			if err != nil || deliver(l, l.down, batch) != nil {
				return
			}
		}
	}()
	return l, nil
}

// TestReadersKnowWhatWasMadeKnown has servers that write and read while messages are delayed, links are cut, and servers come and go.
func TestReadersKnowWhatWasMadeKnown(t *testing.T) {
	seeds := uint64(96)
	if testing.Short() {
		seeds = 24
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			w := newWorld(t, seed)
			delay := []time.Duration{time.Millisecond, 50 * time.Millisecond, 400 * time.Millisecond, 3 * time.Second}[seed%4]
			random := rand.New(rand.NewPCG(seed, 2))
			w.delays = func() time.Duration { return time.Duration(random.Int64N(int64(delay))) }
			pause := []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second}[seed/4%3] // rare writes show what is not taken in
			writes := []int{100, 10}[seed/12%2]
			for i := range 2 + int(seed%3) {
				w.join(ctx, fmt.Sprint("s", i))
			}
			var writers sync.WaitGroup
			late := 0
			for range 1200 {
				time.Sleep(time.Duration(w.random.Int64N(int64(pause))))
				s := w.any()
				switch n := w.random.IntN(1000); {
				case n < writes:
					writers.Go(func() { s.write(ctx) })
				case n < writes+4:
					name := s.token + " " + w.any().token
					w.mu.Lock()
					w.isCut[name] = !w.isCut[name]
					w.mu.Unlock()
				case n < writes+5 && late < 5:
					w.join(ctx, fmt.Sprint("late", late))
					late++
				default:
					s.read()
				}
			}
			if w.readings == 0 && delay < time.Second {
				t.Errorf("seed %d: nothing was read from memory", seed)
			}
			cancel()
			writers.Wait()
			synctest.Wait()
		})
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func noReports() []Report { return nil }

func (w *world) any() *server {
	w.mu.Lock()
	defer w.mu.Unlock()
	tokens := slices.Sorted(maps.Keys(w.servers))
	return w.servers[tokens[w.random.IntN(len(tokens))]]
}
