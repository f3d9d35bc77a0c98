package assignment

import (
	"context"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

const (
	countInterval = 30 * time.Second // between counts of the objects of all accounts
	moveTimeout   = time.Minute      // after which an account that is not live again moves back
	retryMove     = 10 * time.Second // after which an account that could not be moved is considered again
	stayAfterFail = time.Hour        // for which an account stays after its move failed
	maxAttempts   = 20               // accounts that are examined in one step, each with one read of the store
)

// counter is the part of the store that counts objects.
type counter interface {
	AccountSizes(ctx context.Context) (map[vedette.AccountName]int64, error)
	Marks(ctx context.Context, account vedette.AccountName) ([]store.FeedStatus, error)
}

// Balancer moves accounts between the agents that serve them, so that each has about as many
// objects. It moves one account at a time, and only if the account is live, apart from what its
// cluster denies, and has no operation.
// The new cacher continues from the stored marks, so a move costs no list.
type Balancer struct {
	cfg      BalanceConfig
	registry *Registry
	store    counter
	isBusy   func(vedette.AccountName) bool

	// Owned by Run:
	countedAt time.Time
	active    bool  // moves have begun and not ended
	last      *move // nil if the account is live again
}

// NewBalancer returns a Balancer. isBusy reports whether an operation of an account runs.
func NewBalancer(cfg BalanceConfig, r *Registry, c counter, isBusy func(vedette.AccountName) bool) *Balancer {
	return &Balancer{cfg: cfg.withDefaults(), registry: r, store: c, isBusy: isBusy}
}

// Run moves accounts until ctx ends.
func (b *Balancer) Run(ctx context.Context) error {
	runEvery(ctx, time.Second, func() { b.step(ctx, time.Now()) })
	return nil
}

func (b *Balancer) step(ctx context.Context, now time.Time) {
	if now.Sub(b.countedAt) >= countInterval && b.registry.hasShared() {
		b.count(ctx, now)
	}
	if !b.finishLast(ctx, now) {
		return
	}
	percent := int64(startPercent)
	if b.active {
		percent = stopPercent
	}
	moves := b.cfg.planMoves(b.registry.allSlots(), percent, now)
	b.active = len(moves) > 0
	for _, m := range moves[:min(len(moves), maxAttempts)] {
		if b.try(ctx, m, now) {
			return
		}
	}
}

// count sets the weights of all accounts.
func (b *Balancer) count(ctx context.Context, now time.Time) {
	b.countedAt = now
	counts, err := b.store.AccountSizes(ctx)
	if err != nil {
		if ctx.Err() == nil {
			b.registry.log.Warn("cannot count objects, balancing agents by earlier counts", "error", err)
		}
		return
	}
	for _, s := range b.registry.allSlots() {
		s.setWeight(baseWeight + counts[s.account])
	}
}

// hasShared reports whether an account has several agents. Otherwise objects need not be counted,
// which reads all feeds.
func (r *Registry) hasShared() bool {
	return slices.ContainsFunc(r.allSlots(), func(s *slot) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.queue) > 1
	})
}

// finishLast waits until the account that was moved last is live again, and reports whether the next
// one may move. If the account does not become live, for example because the cluster denies the
// agent what it allows the other one, it moves back.
func (b *Balancer) finishLast(ctx context.Context, now time.Time) bool {
	m := b.last
	if m == nil {
		return true
	}
	if now.Sub(m.at) < b.cfg.Pause {
		return false
	}
	cacher, _ := m.slot.current()
	if cacher != m.to || b.isLiveAgain(ctx, m) {
		b.last = nil
		return true
	}
	if now.Sub(m.at) < moveTimeout {
		return false
	}
	b.last = nil
	m.slot.stay(now.Add(stayAfterFail))
	moved := m.slot.move(ctx, m.to, m.from, BalancedBack)
	b.registry.log.Warn("an account is not up to date since it was moved between agents: see its feeds", "account", m.slot.account,
		"agent", m.to.ID, "former", m.from.ID, "back", moved)
	return false
}

// try moves an account if nothing is in the way.
func (b *Balancer) try(ctx context.Context, m move, now time.Time) bool {
	denied, isLive := b.readFeeds(ctx, m.slot.account)
	if !isLive || b.isBusy(m.slot.account) || !m.slot.move(ctx, m.from, m.to, Balancing) {
		m.slot.stay(now.Add(retryMove))
		return false
	}
	m.at, m.denied = now, denied
	b.last = &m
	b.registry.log.Info("account moved to balance agents", "account", m.slot.account, "from", m.from.ID, "agent", m.to.ID)
	return true
}

// isLiveAgain reports whether an account that was moved is live, and its new agent is denied nothing
// that the former one could read.
func (b *Balancer) isLiveAgain(ctx context.Context, m *move) bool {
	denied, isLive := b.readFeeds(ctx, m.slot.account)
	for feed := range denied {
		isLive = isLive && m.denied[feed]
	}
	return isLive
}

// readFeeds returns which feeds of an account its cluster denies, and whether there are others, and all
// of these are live and can be continued from a mark.
func (b *Balancer) readFeeds(ctx context.Context, name vedette.AccountName) (denied map[vedette.Feed]bool, isLive bool) {
	feeds, err := b.store.Marks(ctx, name)
	if err != nil {
		return nil, false
	}
	denied = map[vedette.Feed]bool{}
	for _, f := range feeds {
		switch {
		case f.State == vedette.FeedDenied:
			denied[f.Feed] = true
		case f.State != vedette.FeedLive || f.Mark == "":
			return nil, false
		}
	}
	return denied, len(denied) < len(feeds)
}
