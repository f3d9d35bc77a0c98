package assignment

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
)

const (
	// An account that was assigned within takeoverTenure, or that a standby took over within
	// takeoverPause, waits until the connection of its silent cacher ends. So an agent under the load
	// of its start loses nothing, and agents that fall silent in turns do not pass an account to and fro.
	takeoverTenure = 5 * time.Second
	takeoverPause  = 5 * time.Minute
	// sharedInterval is how often the registry determines which agents share accounts.
	sharedInterval = time.Second
)

// silenceWatch lets standbys take over from agents that are silent, before their connections end. A
// frozen process keeps its connection, which ends only after several heartbeats.
//
// An account goes only to a standby that was heard regularly during the whole silence: if the
// server's network stands still, no agent is heard, and nothing moves. The silent agent keeps its
// connection and becomes a standby, so that it comes back without a new registration. It gets accounts
// only from the Balancer, one after the other.
type silenceWatch struct {
	registry *Registry
	sharedAt time.Time
	running  atomic.Bool // while accounts are taken over
	group    errgroup.Group
}

func newSilenceWatch(r *Registry) *silenceWatch { return &silenceWatch{registry: r} }

func (w *silenceWatch) run(ctx context.Context) error {
	runEvery(ctx, listenInterval, func() { w.step(ctx, time.Now()) })
	return w.group.Wait()
}

func (w *silenceWatch) step(ctx context.Context, now time.Time) {
	if now.Sub(w.sharedAt) >= sharedInterval {
		w.sharedAt = now
		w.registry.findShared()
	}
	if w.registry.listen(now) && w.running.CompareAndSwap(false, true) {
		w.group.Go(func() error {
			defer w.running.Store(false)
			w.registry.takeOverFromSilent(ctx)
			return nil
		})
	}
}

// findShared determines which agents have an account that other agents have, too.
func (r *Registry) findShared() {
	for _, s := range r.allSlots() {
		s.markShared()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for m := range r.members {
		m.silence.setShared()
	}
}

// markShared marks the agents of the account if there are several.
func (s *slot) markShared() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) < 2 {
		return
	}
	for _, m := range s.queue {
		m.silence.foundShared = true
	}
}

// listen notes which agents were heard since the last call, and reports whether one is silent.
func (r *Registry) listen(now time.Time) (anySilent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for m := range r.members {
		m.silence.step()
		isSilent := m.isSilent()
		if m.silence.wasSilent && !isSilent {
			m.setReturned(now)
		}
		m.silence.wasSilent = isSilent
		anySilent = anySilent || isSilent
	}
	return anySilent
}

func (m *Member) setReturned(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.returnedAt = at
}

// takeOverFromSilent gives the accounts of silent agents to standbys, several at a time.
func (r *Registry) takeOverFromSilent(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(maxConcurrentFills)
	var mu sync.Mutex
	taken := map[vedette.AgentID]int{}
	for _, s := range r.allSlots() {
		if cacher, _ := s.current(); cacher == nil || !cacher.isSilent() {
			continue
		}
		group.Go(func() error {
			if from := s.takeOverFromSilent(ctx, time.Now()); from != nil {
				mu.Lock()
				defer mu.Unlock()
				taken[from.ID]++
			}
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	for id, n := range taken {
		r.log.Warn("an agent is silent, and standbys have taken over: look whether its process or its machine is frozen, or its network is interrupted",
			"agent", id, "accounts", n)
	}
}

// takeOverFromSilent gives the account to a standby, and returns the former cacher. It returns nil if
// the account stays.
func (s *slot) takeOverFromSilent(ctx context.Context, now time.Time) *Member {
	from, to := s.findTakeover(now)
	if to == nil || !s.move(ctx, from, to, FellSilent) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takenOverAt = now
	return from
}

// findTakeover returns a silent cacher and the standby that may take over from it. Otherwise the
// standby is nil.
func (s *slot) findTakeover(now time.Time) (from, to *Member) {
	s.mu.Lock()
	from = s.cacher
	canMove := now.Sub(s.assignedAt) >= takeoverTenure && now.Sub(s.takenOverAt) >= takeoverPause
	s.mu.Unlock()
	if from == nil || !canMove || !from.isSilent() {
		return from, nil
	}
	for _, m := range byLoad(s.queued()) {
		if m != from && m.wasHeardFor(from.silence.silentLimit()) && m.canReplace(from, s.account) {
			return from, m
		}
	}
	return from, nil
}
