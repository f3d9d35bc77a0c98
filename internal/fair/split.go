package fair

import "context"

// Split is two Lines for one kind of unit. Grants take what they need at first of the small one, and the rest of
// the large one. So large grants, of however many keys, leave room for small ones, and small ones do not wait
// behind them. A nil Split grants everything. It is safe for concurrent use.
type Split struct {
	small, large *Line
	limit        int64
}

// SplitGrant holds units of a Split for its key until Release. A nil SplitGrant and a new one hold nothing. Its methods
// must not be called concurrently, except Release.
type SplitGrant struct {
	small, large *Grant
	limit        int64
}

// NewSplit returns a Split whose grants take up to limit units of the small Line. For these they never wait.
func NewSplit(small, large Config, limit int64) *Split {
	return &Split{New(small), New(large), limit}
}

// TryAcquire is Line.TryAcquire.
func (s *Split) TryAcquire(key string, n int64) *SplitGrant {
	if s == nil {
		return &SplitGrant{}
	}
	if n <= s.limit {
		if small := s.small.TryAcquire(key, n); small != nil {
			return &SplitGrant{small, s.large.none(key), s.limit}
		}
	}
	if large := s.large.TryAcquire(key, n); large != nil {
		return &SplitGrant{s.small.none(key), large, s.limit}
	}
	return nil
}

// Acquire is Line.Acquire. What it waits for is units of the large Line.
func (s *Split) Acquire(ctx context.Context, key string, n int64) (*SplitGrant, error) {
	if s == nil {
		return &SplitGrant{}, nil
	}
	large, err := s.large.Acquire(ctx, key, n)
	if err != nil {
		return nil, err
	}
	return &SplitGrant{s.small.none(key), large, s.limit}, nil
}

// None returns a grant that holds nothing and may grow.
func (s *Split) None(key string) *SplitGrant {
	if s == nil {
		return &SplitGrant{}
	}
	return &SplitGrant{s.small.none(key), s.large.none(key), s.limit}
}

// Stats describes both Lines together.
func (s *Split) Stats() Stats {
	if s == nil {
		return Stats{}
	}
	small, large := s.small.Stats(), s.large.Stats()
	return Stats{Used: small.Used + large.Used, Waiting: small.Waiting + large.Waiting, Keys: small.Keys + large.Keys}
}

// Grow is Grant.Grow.
func (g *SplitGrant) Grow(ctx context.Context, n int64) error {
	if g == nil || n <= 0 {
		return nil
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if units := g.small.Units(); n <= g.limit-units && g.small.TryGrow(n) {
		return nil
	}
	return g.large.Grow(ctx, n)
}

// Shrink releases n of the units, those of the large Line first.
func (g *SplitGrant) Shrink(n int64) {
	if g == nil {
		return
	}
	large := min(n, g.large.Units())
	g.large.Shrink(large)
	g.small.Shrink(n - large)
}

// Units returns how many units the grant holds.
func (g *SplitGrant) Units() int64 {
	if g == nil {
		return 0
	}
	return g.small.Units() + g.large.Units()
}

// Release returns all units. Further calls do nothing.
func (g *SplitGrant) Release() {
	if g != nil {
		g.small.Release()
		g.large.Release()
	}
}

// none returns a grant of no units, which may grow.
func (l *Line) none(key string) *Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := keyID{0, key}
	return &Grant{line: l, key: &keyState{keyID: id, weight: l.q.weightOf(key, l.q.keys[id])}}
}
