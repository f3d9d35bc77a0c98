package spool

import (
	"context"

	"github.com/vedette-io/vedette/internal/fair"
)

// Memory is what all spools and buffers of merged answers may take together. It is safe for concurrent use.
//
// Nobody knows how large an answer becomes, so grants grow while they hold memory, and all of them could wait for each
// other. Therefore one grant at a time may also take the reserve: it needs nothing that others hold, so it ends, and
// the next one follows.
type Memory struct {
	line    *fair.Line
	turn    *fair.Line // of which one unit stands for the reserve
	reserve int64
}

// NewMemory returns a memory of so many bytes, a quarter of which is the reserve. A caller may hold half of the rest.
func NewMemory(bytes int64) *Memory {
	reserve := bytes / 4
	return &Memory{fair.New(fair.Config{Capacity: bytes - reserve}), fair.New(fair.Config{Capacity: 1}), reserve}
}

// Acquire waits until a caller may hold n bytes, or until ctx ends.
func (m *Memory) Acquire(ctx context.Context, caller string, n int64) (*Grant, error) {
	held, err := m.line.Acquire(ctx, caller, n)
	if err != nil {
		return nil, err
	}
	return &Grant{memory: m, caller: caller, held: held}, nil
}

// Used returns how many bytes are granted.
func (m *Memory) Used() int64 {
	used := m.line.Stats().Used
	if m.turn.Stats().Used > 0 {
		used += m.reserve
	}
	return used
}

// Grant is the memory of one answer. A nil Grant holds nothing, and may not grow. Its methods must not be called
// concurrently, except Release.
type Grant struct {
	memory *Memory
	caller string
	held   *fair.Grant
	turn   *fair.Grant // nil without the reserve
	extra  int64       // of the reserve
}

// Grow waits until the grant may hold n more bytes, or until ctx ends. The error is fair.ErrTooLarge if it never may.
func (g *Grant) Grow(ctx context.Context, n int64) error {
	if g.turn == nil {
		if g.held.TryGrow(n) {
			return nil
		}
		turn, err := g.memory.turn.Acquire(ctx, g.caller, 1)
		if err != nil {
			return err
		}
		g.turn = turn
	}
	if g.extra+n > g.memory.reserve {
		if g.held.TryGrow(n) {
			return nil
		}
		return fair.ErrTooLarge
	}
	g.extra += n
	return nil
}

// HoldsReserve reports whether others may wait until the grant is released.
func (g *Grant) HoldsReserve() bool { return g.turn != nil }

// Shrink releases n of the bytes, those of the reserve first.
func (g *Grant) Shrink(n int64) {
	fromReserve := min(n, g.extra)
	g.extra -= fromReserve
	if g.turn != nil && g.extra == 0 {
		g.turn.Release()
		g.turn = nil
	}
	if n > fromReserve {
		g.held.Shrink(n - fromReserve)
	}
}

// Release returns all bytes. Further calls do nothing.
func (g *Grant) Release() {
	if g == nil {
		return
	}
	g.turn.Release()
	g.held.Release()
}
