package assignment

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// baseWeight is what an account without objects costs its agent, in objects: connections and
// buffers take about as much memory as some hundred objects in flight.
const baseWeight = 100

// BalanceConfig configures a Balancer. A zero value means the default, which is at the end of each
// comment.
type BalanceConfig struct {
	// Settle is how long an agent must be connected before it gets or loses accounts, so that one
	// that comes and goes moves nothing; 30 s.
	Settle time.Duration
	// Tenure is how long an account stays with an agent before it is moved; 2 min.
	Tenure time.Duration
	// Pause is the time from one move to the next. The new cacher must have reported the states of its
	// feeds by then; 3 s.
	Pause time.Duration
}

func (c BalanceConfig) withDefaults() BalanceConfig {
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{{&c.Settle, 30 * time.Second}, {&c.Tenure, 2 * time.Minute}, {&c.Pause, 3 * time.Second}} {
		if *d.value <= 0 {
			*d.value = d.fallback
		}
	}
	return c
}

// Moves begin when two agents differ by more than startPercent of what they have together, for
// example 65 to 35, and end when no two differ by more than stopPercent. So counts that change a
// little move nothing.
const (
	startPercent = 30
	stopPercent  = 10
)

// move is the move of an account from its cacher to a standby.
type move struct {
	slot     *slot
	from, to *Member
	gain     float64 // by how much it lowers the sum of the squares of the loads
	at       time.Time
	denied   map[vedette.Feed]bool // what the cluster denied from
}

// planMoves returns the moves that make the loads of two agents more equal, best first. Each of them
// lowers the sum of the squares of the loads. So moves end, and an account never moves in a circle
// while the counts stay.
func (c BalanceConfig) planMoves(slots []*slot, percent int64, now time.Time) []move {
	var moves []move
	for _, s := range slots {
		moves = append(moves, c.movesOf(s, percent, now)...)
	}
	slices.SortFunc(moves, func(a, b move) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.slot.account, b.slot.account), cmp.Compare(a.to.ID, b.to.ID))
	})
	return moves
}

// movesOf returns the moves of one account.
func (c BalanceConfig) movesOf(s *slot, percent int64, now time.Time) (moves []move) {
	s.mu.Lock()
	from, weight, canMove := s.cacher, s.weight, len(s.queue) > 1 && now.Sub(s.assignedAt) >= c.Tenure && !now.Before(s.stayUntil)
	s.mu.Unlock()
	if from == nil || !canMove || !c.isSettled(from, now) {
		return nil
	}
	for _, to := range s.queued() {
		have, has := from.load.Load(), to.load.Load()
		if to == from || weight >= have-has || (have-has)*100 <= (have+has)*percent || !c.isSettled(to, now) || !to.canReplace(from, s.account) {
			continue
		}
		moves = append(moves, move{slot: s, from: from, to: to, gain: float64(weight) * float64(have-has-weight)})
	}
	return moves
}

// isSettled reports whether the agent has been connected, and was not silent, for long enough.
func (c BalanceConfig) isSettled(m *Member, now time.Time) bool {
	return !m.isSilent() && now.Sub(m.joinedAt) >= c.Settle && now.Sub(m.lastReturned()) >= c.Settle
}

// canReplace reports whether an account may move from another agent to this one while both are
// there. That must change nothing for users. So the agents must be in the same zone, must have
// registered the account alike, and this one must not report an error.
func (m *Member) canReplace(from *Member, name vedette.AccountName) bool {
	if m.ZoneID != from.ZoneID || m.hasAccountError(name) {
		return false
	}
	a, b := from.registration(name), m.registration(name)
	return a.Shape == b.Shape && reflect.DeepEqual(a.Properties, b.Properties)
}

func (m *Member) hasAccountError(name vedette.AccountName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.errors[name].Message != ""
}

// byLoad returns the agents of an account in the order in which they take over: those in the zone of
// the one that registered first, by their load, then the others, and last those that are silent.
func byLoad(queue []*Member) []*Member {
	if len(queue) == 0 {
		return nil
	}
	zone := queue[0].ZoneID
	distance := func(m *Member) int {
		switch {
		case m.isSilent():
			return 2
		case m.ZoneID != zone:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(queue, func(a, b *Member) int {
		return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(a.load.Load(), b.load.Load()))
	})
	return queue
}
