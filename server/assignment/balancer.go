package assignment

import (
	"slices"
	"time"
)

const (
	countInterval = 30 * time.Second // between counts of the objects of all accounts
	moveTimeout   = time.Minute      // after which an account that is not live again moves back
	retryMove     = 10 * time.Second // after which an account that could not be moved is considered again
	stayAfterFail = time.Hour        // for which an account stays after its move failed
	maxAttempts   = 20               // accounts that are examined in a row, each with one read of the store
)

// balancer moves accounts between the agents that serve them, so that each has about as many
// objects. It moves one account at a time, and only if the account is live, apart from what its
// cluster denies, and has no operation.
// The new cacher continues from the stored marks, so a move costs no list.
type balancer struct {
	enabled bool
	cfg     BalanceConfig

	countedAt  time.Time
	isCounting bool
	isActive   bool         // moves have begun and not ended
	last       *plannedMove // nil if the account is live again
	examining  Attempt      // of last, or of the first in next; 0 for none
	next       []plannedMove
	isMoving   bool // last, or the first in next, or incoming, is being moved
	// incoming is the move of an account from another server, which is examined or moved; nil for none.
	incoming  *job
	restUntil time.Time // after a move to another server
}

// balance continues to balance agents. It is called each second.
func (f *Fleet) balance() {
	b := &f.balancer
	if !b.enabled || f.isDraining || b.isCounting || b.examining != 0 || b.isMoving {
		return
	}
	if f.now.Sub(b.countedAt) >= countInterval && f.hasShared() {
		b.countedAt, b.isCounting = f.now, true
		f.emit(CountObjects{})
		return
	}
	f.finishLast()
}

// hasShared reports whether an account has several agents. Otherwise objects need not be counted,
// which reads all feeds.
func (f *Fleet) hasShared() bool {
	for _, a := range f.accounts {
		if len(a.candidates) > 1 || a.cacher != 0 && f.hasRemote(a) {
			return true
		}
	}
	return false
}

// counted sets the weights of all accounts.
func (f *Fleet) counted(e Counted) {
	f.balancer.isCounting = false
	if e.Err != nil {
		f.log.Warn("cannot count objects, balancing agents by earlier counts", "error", e.Err)
	} else {
		for _, a := range f.accounts {
			f.setWeight(a, baseWeight+e.Sizes[a.name])
		}
	}
	f.finishLast()
}

// finishLast waits until the account that was moved last is live again. Then the next one may move.
func (f *Fleet) finishLast() {
	b := &f.balancer
	switch {
	case b.last == nil:
		f.beginMoves()
	case f.now.Sub(b.last.at) < b.cfg.Pause:
	case b.last.account.cacher != b.last.to.id:
		b.last = nil
		f.beginMoves()
	default:
		f.examine(b.last)
	}
}

// beginMoves examines the best moves, one after the other, until one is made.
func (f *Fleet) beginMoves() {
	b := &f.balancer
	if f.now.Before(b.restUntil) {
		return
	}
	percent := int64(startPercent)
	if b.isActive {
		percent = stopPercent
	}
	b.next = f.planMoves(percent)
	b.isActive = len(b.next) > 0
	b.next = b.next[:min(len(b.next), maxAttempts)]
	f.examineNext()
}

func (f *Fleet) examineNext() {
	if len(f.balancer.next) > 0 {
		f.examine(&f.balancer.next[0])
	}
}

func (f *Fleet) examine(m *plannedMove) {
	f.attempts++
	f.balancer.examining = f.attempts
	f.emit(Examine{Account: m.account.name, Attempt: f.attempts})
}

func (f *Fleet) examined(e Examined) {
	b := &f.balancer
	if b.examining == 0 || b.examining != e.Attempt {
		return
	}
	b.examining = 0
	switch {
	case b.incoming != nil:
		f.examinedIncoming(e)
		return
	case b.last != nil:
		f.checkLast(e)
		return
	}
	m := &b.next[0]
	m.denied = e.Denied
	a := m.account
	if !e.IsLive || e.IsBusy || !a.isAtRest() || a.offer != nil || a.cacher != m.from.id {
		f.skipMove()
		return
	}
	if m.to == nil {
		f.moveAway(m)
		return
	}
	if !a.has(m.to) {
		f.skipMove()
		return
	}
	b.isMoving = true
	f.move(a, m.to, ReasonBalance)
}

// skipMove leaves an account where it is for now, and examines the next one.
func (f *Fleet) skipMove() {
	b := &f.balancer
	b.next[0].account.stayUntil = f.now.Add(retryMove)
	b.next = slices.Delete(b.next, 0, 1)
	f.examineNext()
}

// checkLast ends the move of an account that is live again, and whose new agent is denied nothing
// that the former one could read. If the account does not become live, for example because the cluster denies the
// agent what it allows the other one, it moves back.
func (f *Fleet) checkLast(e Examined) {
	b, m := &f.balancer, f.balancer.last
	isLive := e.IsLive
	for feed := range e.Denied {
		isLive = isLive && m.denied[feed]
	}
	a := m.account
	switch {
	case isLive || a.cacher != m.to.id:
		b.last = nil
		f.beginMoves()
		return
	case f.now.Sub(m.at) < moveTimeout:
		return
	}
	a.stayUntil = f.now.Add(stayAfterFail)
	if m.from == nil {
		f.offerBack(m)
		return
	}
	if !a.isAtRest() || !a.has(m.from) {
		f.endReturn(false)
		return
	}
	b.isMoving = true
	f.move(a, m.from, ReasonReturned)
}

func (f *Fleet) endBalanceMove(a *account, j job, hasMoved bool) {
	b := &f.balancer
	b.isMoving = false
	switch {
	case j.reason == ReasonReturned:
		f.endReturn(hasMoved)
	case !hasMoved:
		f.skipMove()
	default:
		m := b.next[0]
		m.at = f.now
		b.last, b.next = &m, nil
		f.log.Info("account moved to balance agents", "account", a.name, "from", m.from.ID, "agent", m.to.ID)
	}
}

func (f *Fleet) endReturn(hasMoved bool) {
	m := f.balancer.last
	f.balancer.last = nil
	former := m.remote.describe()
	if m.from != nil {
		former = string(m.from.ID)
	}
	f.log.Warn("an account is not up to date since it was moved between agents: see its feeds", "account", m.account.name, "agent", m.to.ID, "former", former, "back", hasMoved)
}
