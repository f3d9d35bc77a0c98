package fair

import (
	"context"
	"errors"
)

// errReleased reports that a grant cannot grow, because it was released.
var errReleased = errors.New("the grant was released")

// Grant holds units of a Line for its key until Release. A nil Grant and a new one hold nothing. Its methods must
// not be called concurrently, except Release.
type Grant struct {
	line *Line // nil for nothing
	key  *keyState

	// Guarded by line.mu.
	units    int64
	released bool
}

// Grow waits until the grant may hold n more units. The other requests of its key wait behind it, so
// that what has begun ends first. It keeps what it holds while it waits, so all of a Line's grants may
// wait for each other: use it on lines whose Config has Wait, and release the grant after an error.
func (g *Grant) Grow(ctx context.Context, n int64) error {
	if g == nil || g.line == nil {
		return nil
	}
	w, err := g.growth(n)
	if w == nil || err != nil {
		return err
	}
	more, err := g.line.wait(ctx, w)
	if err != nil {
		return err
	}
	if !g.take(more) {
		return errReleased
	}
	return nil
}

// TryGrow is Grow, but reports false instead of waiting.
func (g *Grant) TryGrow(n int64) bool {
	if g == nil || g.line == nil {
		return true
	}
	w, err := g.growth(n)
	if w == nil || err != nil {
		return err == nil
	}
	more := g.line.try(w)
	if more == nil {
		return false
	}
	return g.take(more)
}

// growth returns a request for n more units, or nil if n is not positive.
func (g *Grant) growth(n int64) (*waiter, error) {
	if n <= 0 {
		return nil, nil //nolint:nilnil // nothing to wait for
	}
	g.line.mu.Lock()
	defer g.line.mu.Unlock()
	switch {
	case g.released:
		return nil, errReleased
	case n > g.line.q.share(g.key.weight)-g.units:
		return nil, ErrTooLarge
	}
	return &waiter{class: g.key.class, name: g.key.name, units: n, first: true}, nil
}

// take adds the units of another grant of the same key. If the grant was released meanwhile, so are
// they, and take reports false.
func (g *Grant) take(more *Grant) bool {
	g.line.mu.Lock()
	released := g.released
	if !released {
		g.key = more.key // a key is forgotten while it holds nothing, and the grant may have shrunk to that
		g.units += more.units
		more.released = true
	}
	g.line.mu.Unlock()
	if released {
		more.Release()
	}
	return !released
}

// Join moves the units of another grant of the same key to g, which may be new, so that whoever acquires often
// keeps one grant. It reports false, and releases the units, if g was released.
func (g *Grant) Join(more *Grant) bool {
	if more == nil || more.line == nil {
		return true
	}
	if g.line == nil {
		g.line, g.key = more.line, more.key
	}
	return g.take(more)
}

// Shrink releases n of the units. It keeps at least none.
func (g *Grant) Shrink(n int64) {
	if g == nil || g.line == nil || n <= 0 {
		return
	}
	g.line.mu.Lock()
	defer g.line.mu.Unlock()
	if n = min(n, g.units); n > 0 && !g.released {
		g.units -= n
		g.line.q.release(g.key, n)
		g.line.grantLocked()
	}
}

// Units returns how many units the grant holds.
func (g *Grant) Units() int64 {
	if g == nil || g.line == nil {
		return 0
	}
	g.line.mu.Lock()
	defer g.line.mu.Unlock()
	return g.units
}

// Release returns all units. Further calls do nothing.
func (g *Grant) Release() {
	if g == nil || g.line == nil {
		return
	}
	g.line.mu.Lock()
	defer g.line.mu.Unlock()
	if g.released {
		return
	}
	g.released = true
	if g.units > 0 {
		g.line.q.release(g.key, g.units)
		g.units = 0
		g.line.grantLocked()
	}
}
