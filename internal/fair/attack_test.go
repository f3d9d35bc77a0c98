package fair

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A key that cancels requests, or fails to grow, while it holds something does not come before the others.
func TestCanceledRequestsDoNotJumpTheQueue(t *testing.T) {
	for name, attack := range map[string]func(l *lineTest, own *Grant){
		"cancel": func(l *lineTest, _ *Grant) { l.ask("canceled", 0, "a", 1)() },
		"grow":   func(_ *lineTest, own *Grant) { own.TryGrow(1) },
		"a growth that is canceled": func(l *lineTest, own *Grant) {
			ctx, cancel := context.WithCancel(l.Context())
			go func() { _ = own.Grow(ctx, 2) }()
			synctest.Wait()
			cancel()
		},
		"a full share": func(l *lineTest, own *Grant) { own.TryGrow(4) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, weight := range []int{1, 3} {
				runLineTest(t, Config{Capacity: 10, Share: 5, Weight: func(key string) int { return map[string]int{"a": weight}[key] }}, func(l *lineTest) {
					own, others, rest := l.mustAcquire("a", 1), l.mustAcquire("b", 5), l.mustAcquire("d", 4)
					l.ask("honest", 0, "c", 1)
					attack(l, own)
					synctest.Wait()
					l.ask("greedy", 0, "a", 1)
					others.Shrink(1)
					synctest.Wait()
					if !slices.Equal(l.order, []string{"honest"}) {
						t.Errorf("weight %d: got %q granted, want the request that came first", weight, l.order)
					}
					own.Release()
					others.Release()
					rest.Release()
					l.releaseAll()
				})
			}
		})
	}
}

// A grant that fails to grow leaves the other requests of its key where they are.
func TestFailedGrowthKeepsThePlace(t *testing.T) {
	runLineTest(t, Config{Capacity: 10, Share: 5}, func(l *lineTest) {
		own, others := l.mustAcquire("a", 1), l.mustAcquire("b", 5)
		more := l.mustAcquire("d", 4)
		l.ask("first", 0, "a", 3)
		l.ask("second", 0, "c", 3)
		if own.TryGrow(4) || own.TryGrow(1) {
			t.Error("a grant grew although nothing is free")
		}
		more.Release()
		synctest.Wait()
		if !slices.Equal(l.order, []string{"first"}) {
			t.Errorf("got %q granted, want the request that came first", l.order)
		}
		own.Release()
		others.Release()
		l.releaseAll()
	})
}

// A class that was alone and has used its grants does not wait twice as long afterwards.
func TestClassThatWasAlone(t *testing.T) {
	runLineTest(t, Config{Capacity: 1, Share: 1, Classes: []int{3, 1}}, func(l *lineTest) {
		l.ask("x", 1, "x", 1)
		l.ask("low", 1, "feeds", 1)
		for i := range 8 {
			l.ask(fmt.Sprint("high ", i), 0, "operations", 1)
		}
		if got := slices.Index(l.releaseAll(), "low"); got != 4 {
			t.Errorf("got the lower class after %d others, want 4", got)
		}
	})
}

// Numbers that callers choose do not overflow.
func TestLargeNumbersDoNotOverflow(t *testing.T) {
	const most = math.MaxInt64
	for _, tt := range []struct {
		name         string
		cfg          Config
		weight       int
		key, maximum int64 // what one key may hold, and all
	}{
		{"a share above the capacity", Config{Capacity: 100, Share: most}, 2, 100, 100},
		{"a large weight", Config{Capacity: 100, Share: 30}, math.MaxInt, 100, 100},
		{"a weight that divides the capacity", Config{Capacity: 100, Share: 50}, 2, 100, 100},
		{"a weight below the capacity", Config{Capacity: 100, Share: 33}, 3, 99, 100},
		{"no limit", Config{Capacity: most, Share: most}, 1, most, most},
		{"no limit for all", Config{Capacity: most}, 1, most / 2, most},
		{"no capacity", Config{}, 1, 1, 1},
		{"a negative capacity", Config{Capacity: -5}, 1, 1, 1},
	} {
		tt.cfg.Weight = func(string) int { return tt.weight }
		l := New(tt.cfg)
		a := l.TryAcquire("a", most)
		if a.Units() != tt.key {
			t.Errorf("%s: one key got %d units, want %d", tt.name, a.Units(), tt.key)
		}
		if l.TryAcquire("a", most) != nil || a.TryGrow(most) || a.TryGrow(1) {
			t.Errorf("%s: one key got more than its share", tt.name)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := a.Grow(ctx, most); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: got %v for a growth beyond the share, want ErrTooLarge", tt.name, err)
		}
		cancel()
		for i := range 10 {
			l.TryAcquire(fmt.Sprint("other ", i), most)
		}
		if used := l.Stats().Used; used < 0 || used > tt.maximum {
			t.Errorf("%s: got %d units used, want at most %d", tt.name, used, tt.maximum)
		}
	}
}

// TestReleasedGrantsDoNotGrow checks that a released grant does not grow: nobody would release the new units.
func TestReleasedGrantsDoNotGrow(t *testing.T) {
	l := New(Config{Capacity: 10, Wait: time.Second})
	g := l.TryAcquire("a", 1)
	g.Release()
	if err := g.Grow(t.Context(), 1); !errors.Is(err, errReleased) || g.TryGrow(1) || g.Units() != 0 {
		t.Errorf("got %v and %d units, want errReleased and none", err, g.Units())
	}
	if got := l.Stats(); got != (Stats{}) {
		t.Errorf("got %+v, want an empty line", got)
	}
}

// Nothing is granted to a context that has ended, even if the grant came at the same time, as it does for
// requests that waited while the process was frozen. What was granted when the wait ended is used.
func TestSeveralEndsAtOnce(t *testing.T) {
	cause := errors.New("the caller left")
	for _, tt := range []struct {
		name                     string
		granted, ended, timedOut bool
		want                     error
	}{
		{"granted", true, false, false, nil},
		{"granted at the timeout", true, false, true, nil},
		{"granted to nobody", true, true, false, cause},
		{"all", true, true, true, cause},
		{"not granted", false, false, true, ErrTimeout},
		{"not granted to nobody", false, true, true, cause},
	} {
		for range 20 { // a select chooses at random
			l := New(Config{Capacity: 1, Share: 1})
			held, w := l.TryAcquire("a", 1), &waiter{name: "b", units: 1}
			if err := l.enqueue(w); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			timeout := make(chan time.Time, 1)
			if tt.granted {
				held.Release()
			}
			if tt.ended {
				cancel(cause)
			}
			if tt.timedOut {
				timeout <- time.Time{}
			}
			if err := w.await(ctx, timeout); !errors.Is(err, tt.want) {
				t.Fatalf("%s: got %v, want %v", tt.name, err, tt.want)
			}
			cancel(nil)
		}
	}
}

// A context that has ended is granted nothing, even if all is free.
func TestEndedContextIsGrantedNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := New(Config{Capacity: 1})
	if _, err := l.Acquire(ctx, "a", 1); !errors.Is(err, context.Canceled) || l.Stats() != (Stats{}) {
		t.Errorf("got %v and %+v, want the context's error and nothing used", err, l.Stats())
	}
}

// Large requests of one key, each of which gives up, do not hold up the other keys forever.
func TestRequestsThatGiveUp(t *testing.T) {
	for _, weight := range []int{1, 3} {
		runLineTest(t, Config{Capacity: 10, Share: 5, Weight: func(key string) int { return map[string]int{"a": weight}[key] }}, func(l *lineTest) {
			l.mustAcquire("b", 4)
			l.mustAcquire("d", 2)
			var cancels []context.CancelFunc
			for i := range 10 {
				cancels = append(cancels, l.ask(fmt.Sprint("large ", i), 0, "a", 5))
			}
			l.ask("honest", 0, "c", 1)
			for _, cancel := range cancels[:weight] {
				cancel()
				synctest.Wait()
			}
			if !slices.Equal(l.order, []string{"honest"}) {
				t.Errorf("weight %d: got %q granted, want the small request", weight, l.order)
			}
			for _, cancel := range cancels {
				cancel()
			}
		})
	}
}

// One source with thousands of keys delays itself: only keys that callers cannot choose are fair, so that
// users of lines nest one in the other. The share of a key bounds what its own line can take.
func TestManyKeysDelayOnlyTheirSource(t *testing.T) {
	runLineTest(t, Config{Capacity: 4, Share: 2}, func(all *lineTest) {
		inner := New(Config{Capacity: 2, Share: 1, Waiting: 2000})
		acquire := func(user string) {
			if _, err := inner.Acquire(all.Context(), user, 1); err == nil {
				_, _ = all.Acquire(all.Context(), "attacker", 1)
			}
		}
		for i := range 5000 {
			go acquire(fmt.Sprint("user ", i))
		}
		synctest.Wait()
		if got := inner.Stats(); got.Used != 2 || got.Waiting != 2000 {
			t.Errorf("got %+v of the attacker, want 2 granted and 2000 waiting", got)
		}
		all.mustAcquire("honest", 1)
		all.mustAcquire("honest", 1)
	})
}

// FuzzLine runs programs of requests, growths, cancellations and releases, and checks after each step:
//
//   - No unit is granted twice or lost, and no key has more than its share.
//   - The requests of a key are granted in order.
//   - While a key waits for its turn, no other key of its class has more than one turn, and other classes have
//     no more than their part.
//   - Nothing waits that could be granted.
func FuzzLine(f *testing.F) {
	f.Add([]byte{0, 9, 1, 9, 2, 3, 30, 1, 20, 0, 40, 0})
	f.Add([]byte{0, 1, 1, 7, 2, 1, 0, 1, 20, 1, 0, 1, 30, 0, 40, 1})
	f.Fuzz(func(t *testing.T, program []byte) {
		m := newModel(t)
		for len(program) >= 2 {
			m.step(program[0], int64(program[1]))
			m.check()
			program = program[2:]
		}
		m.finish()
	})
}

// TestRandomProgramsMatchTheModel runs FuzzLine's programs for a while.
func TestRandomProgramsMatchTheModel(t *testing.T) {
	for seed := range uint64(300) {
		random, m := rand.New(rand.NewPCG(seed, 0)), newModel(t)
		for range 300 {
			m.step(byte(random.IntN(60)), int64(random.IntN(256)))
			m.check()
		}
		m.finish()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// model drives a Line without goroutines.
type model struct {
	t       *testing.T
	l       *Line
	waiting []*modelWaiter
	grants  []*Grant
	next    int // number of the next request
}

type modelWaiter struct {
	w       *waiter
	number  int
	grant   *Grant            // that grows; nil for a new one
	others  map[string]int    // grants of other keys of its class while it was the next of its key and had its turn to come
	classes [modelClasses]int // grants of other classes since the last one of its own
}

const (
	modelKeys    = 5
	modelClasses = 2
)

var modelWeights = [modelClasses]int{3, 1}

func modelWeight(key string) int { return map[string]int{"key 0": 3}[key] }

func newModel(t *testing.T) *model {
	return &model{t: t, l: New(Config{Capacity: 20, Share: 8, Weight: modelWeight, Classes: modelWeights[:], Queue: 8, Waiting: 30})}
}

func (m *model) step(op byte, n int64) {
	key, class := fmt.Sprint("key ", n%modelKeys), int(n/modelKeys)%modelClasses
	switch op / 10 % 6 {
	case 0: // request
		m.enqueue(&modelWaiter{w: &waiter{name: key, class: class, units: 1 + int64(op%10)}})
	case 1: // request without waiting
		if g := m.l.TryAcquire(key, 1+int64(op%10)); g != nil {
			m.grants = append(m.grants, g)
			m.count(g.key)
		}
	case 2: // cancel
		if len(m.waiting) > 0 {
			i := int(n) % len(m.waiting)
			w := m.waiting[i]
			m.waiting = slices.Delete(m.waiting, i, i+1)
			m.l.cancel(w.w)
		}
	case 3:
		if g := m.grant(n); g != nil {
			g.Release()
		}
	case 4:
		if g := m.grant(n); g != nil {
			g.Shrink(int64(op % 10))
		}
	case 5:
		m.grow(m.grant(n), int64(op%10), n%2 == 0)
	}
	m.collect()
}

// grow lets a grant grow, with or without waiting. A grant grows once at a time.
func (m *model) grow(g *Grant, n int64, waits bool) {
	if g == nil || slices.ContainsFunc(m.waiting, func(w *modelWaiter) bool { return w.grant == g }) {
		return
	}
	if !waits {
		if g.TryGrow(n) && n > 0 {
			m.count(g.key)
		}
		return
	}
	if w, err := g.growth(n); w != nil && err == nil {
		m.enqueue(&modelWaiter{w: w, grant: g})
	}
}

func (m *model) grant(n int64) *Grant {
	if len(m.grants) == 0 {
		return nil
	}
	return m.grants[int(n)%len(m.grants)]
}

func (m *model) enqueue(w *modelWaiter) {
	w.number, w.others = m.next, map[string]int{}
	m.next++
	if m.l.enqueue(w.w) == nil {
		m.waiting = append(m.waiting, w)
	}
}

// collect takes what was granted, until nothing more is: a grant that was released while it grew releases
// what it gets.
func (m *model) collect() {
	for m.collectOnce() {
	}
	for _, w := range m.waiting {
		if k := w.w.key; k.turn == nil || k.waiting.Front().Value != any(w.w) {
			w.others, w.classes = map[string]int{}, [modelClasses]int{}
		}
	}
}

// collectOnce reports whether anything was granted.
func (m *model) collectOnce() bool {
	var granted []*modelWaiter
	m.waiting = slices.DeleteFunc(m.waiting, func(w *modelWaiter) bool {
		if w.w.granted {
			granted = append(granted, w)
		}
		return w.w.granted
	})
	var keys []*keyState
	for _, w := range granted {
		for _, other := range m.waiting {
			if other.w.key == w.w.key && other.number < w.number && other.w.first == w.w.first {
				m.t.Errorf("request %d of %s was granted before %d", w.number, w.w.name, other.number)
			}
		}
		g := m.l.grantOf(w.w)
		if w.grant == nil {
			m.grants = append(m.grants, g)
		} else {
			_ = w.grant.take(g)
		}
		keys = append(keys, w.w.key)
	}
	m.count(keys...)
	return len(granted) > 0
}

// count counts the grants of one step for those that wait for their turn. Nobody knows their order, so those
// of a step in which a waiter's own key, or its own class, had a turn do not count for it.
func (m *model) count(keys ...*keyState) {
	for _, w := range m.waiting {
		own := w.w.key
		hadTurn := slices.Contains(keys, own)
		classHadTurn := slices.ContainsFunc(keys, func(k *keyState) bool { return k.class == own.class })
		if hadTurn {
			w.others = map[string]int{}
		}
		if classHadTurn {
			w.classes = [modelClasses]int{}
		}
		for _, k := range keys {
			switch {
			case k.class == own.class && !hadTurn:
				w.others[k.name]++
			case k.class != own.class && !classHadTurn:
				w.classes[k.class]++
			}
		}
	}
}

func (m *model) check() {
	m.t.Helper()
	checkHeld(m.t, m.l)
	var sum int64
	for _, g := range m.grants {
		sum += g.Units()
	}
	if q := &m.l.q; q.used != sum || q.used > q.cfg.Capacity || q.waiting != len(m.waiting) {
		m.t.Fatalf("got %d used and %d waiting, want %d and %d", q.used, q.waiting, sum, len(m.waiting))
	}
	for _, w := range m.waiting {
		for key, n := range w.others {
			if n > max(modelWeight(key), 1) {
				m.t.Fatalf("%s had %d grants while %s waited for its turn", key, n, w.w.name)
			}
		}
		for class, n := range w.classes {
			if n > modelWeights[class] {
				m.t.Fatalf("class %d had %d grants while %s of class %d waited for its turn", class, n, w.w.name, w.w.class)
			}
		}
	}
	m.checkIdle()
}

// checkIdle checks that nothing waits that could be granted, and that nothing is kept of idle keys.
func (m *model) checkIdle() {
	q := &m.l.q
	for id, k := range q.keys {
		if k.held == 0 && k.waiting.Len() == 0 {
			m.t.Fatalf("%v is kept without a reason", id)
		}
		if ready := q.isReady(k); ready != (k.turn != nil) {
			m.t.Fatalf("%v is ready: %v, waits for its turn: %v", id, ready, k.turn != nil)
		}
	}
	if w := q.next(); w != nil {
		m.t.Fatalf("a request of %s was not granted, although it could be", w.name)
	}
}

func (m *model) finish() {
	for rounds := 0; len(m.waiting) > 0 || len(m.grants) > 0; rounds++ {
		if rounds > 1000 {
			m.t.Fatalf("%d requests are never granted", len(m.waiting))
		}
		grants := m.grants
		m.grants = nil
		for _, g := range grants {
			g.Release()
		}
		m.collect()
	}
	if got := m.l.Stats(); got != (Stats{}) {
		m.t.Errorf("got %+v at the end, want an empty line", got)
	}
}
