package assignment

import (
	"cmp"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// baseWeight is what an account without objects costs its agent, in objects: connections and
// buffers take about as much memory as some hundred objects in flight.
const baseWeight = 100

// BalanceConfig says when accounts are moved to balance agents. A zero value means the default, which is at the end of each
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
	// Stable is for how long the servers must be the same before an agent is asked to connect to one that has fewer; 5 min.
	Stable time.Duration
	// IsWithinServer lets accounts move only between agents of one server, as long as these are connected, and leaves agents at their
	// servers.
	IsWithinServer bool
}

func (c BalanceConfig) withDefaults() BalanceConfig {
	return BalanceConfig{IsWithinServer: c.IsWithinServer,
		Settle: cmp.Or(max(0, c.Settle), 30*time.Second), Tenure: cmp.Or(max(0, c.Tenure), 2*time.Minute),
		Pause: cmp.Or(max(0, c.Pause), 3*time.Second), Stable: cmp.Or(max(0, c.Stable), 5*time.Minute)}
}

// Moves begin when two agents differ by more than startPercent of what they have together, for
// example 65 to 35, and end when no two differ by more than stopPercent. So counts that change a
// little move nothing.
const (
	startPercent = 30
	stopPercent  = 10
)

// plannedMove is the move of an account from its cacher to a standby.
type plannedMove struct {
	account  *account
	from, to *member        // to is nil if it is an agent of another server, and from if that was one
	remote   *remoteStandby // the other one then; for an account that was taken, with its server and member only
	gain     float64        // by how much it lowers the sum of the squares of the loads
	at       time.Time
	denied   map[vedette.Feed]bool // what the cluster denied from
}

// toID returns the ids of the agent that gets the account.
func (m *plannedMove) toID() (vedette.AgentID, MemberID) {
	if m.to == nil {
		return m.remote.ID, m.remote.Member
	}
	return m.to.ID, m.to.id
}

// planMoves returns the moves that make the loads of two agents more equal, best first. Each of them
// lowers the sum of the squares of the loads. So moves end, and an account never moves in a circle
// while the counts stay.
func (f *Fleet) planMoves(percent int64) []plannedMove {
	var moves []plannedMove
	for _, a := range f.accounts {
		moves = append(moves, f.movesOf(a, percent)...)
	}
	slices.SortFunc(moves, func(a, b plannedMove) int {
		idOfA, memberOfA := a.toID()
		idOfB, memberOfB := b.toID()
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.account.name, b.account.name), cmp.Compare(idOfA, idOfB),
			cmp.Compare(memberOfA, memberOfB))
	})
	return moves
}

func (f *Fleet) movesOf(a *account, percent int64) (moves []plannedMove) {
	from := f.members[a.cacher]
	if from == nil || a.offer != nil || f.now.Sub(a.assignedAt) < f.balancer.cfg.Tenure || f.now.Before(a.stayUntil) ||
		!f.isSettled(from) {
		return nil
	}
	for _, to := range a.candidates {
		if to == from || !a.balances(from, to.load, percent) || !f.isSettled(to) || !to.canReplace(from, a.name) {
			continue
		}
		moves = append(moves, plannedMove{account: a, from: from, to: to, gain: a.gain(from, to.load)})
	}
	return append(moves, f.remoteMovesOf(a, from, percent)...)
}

// remoteMovesOf returns the moves to agents of other servers.
func (f *Fleet) remoteMovesOf(a *account, from *member, percent int64) (moves []plannedMove) {
	if f.balancer.cfg.IsWithinServer {
		return nil
	}
	for _, r := range f.remoteStandbys(a) {
		if !a.balances(from, r.Load, percent) {
			break // the others have more
		}
		if r.isSettled(f.balancer.cfg.Settle, f.now) && r.canReplace(from, a.name) && !f.hasRefused(a, &r) &&
			!f.now.Before(f.peers[r.server].balanceAfter) {
			moves = append(moves, plannedMove{account: a, from: from, remote: &r, gain: a.gain(from, r.Load)})
		}
	}
	return moves
}

// balances reports whether the loads of two agents differ by more than some percent, and less if the account moves.
func (a *account) balances(from *member, to, percent int64) bool {
	return a.weight < from.load-to && (from.load-to)*100 > (from.load+to)*percent
}

func (a *account) gain(from *member, to int64) float64 {
	return float64(a.weight) * float64(from.load-to-a.weight)
}

// isSettled reports whether the agent has been connected, and was not silent, for long enough.
func (f *Fleet) isSettled(m *member) bool {
	return !m.liveness.isSilent() && f.settledFor(m) >= f.balancer.cfg.Settle
}

// settledFor returns how long ago the agent has connected, or was heard again after it had been silent.
func (f *Fleet) settledFor(m *member) time.Duration {
	return min(f.now.Sub(m.joinedAt), f.now.Sub(m.liveness.returnedAt))
}

// canReplace reports whether an account may move from another agent to this one while both are
// there. That must change nothing for users. So the agents must be in the same zone, must have
// registered the account alike, and this one must not report an error.
func (m *member) canReplace(from *member, name vedette.AccountName) bool {
	if m.ZoneID != from.ZoneID || m.failing[name] {
		return false
	}
	a, b := from.registered[name], m.registered[name]
	return a.Shape == b.Shape && a.prepared.equals(b.prepared)
}

// byLoad returns the agents of an account in the order in which they take over: those in the zone of
// the one that registered first, by their load, then the others, and last those that are silent.
func (f *Fleet) byLoad(candidates []*member) []*member {
	if len(candidates) == 0 {
		return nil
	}
	zone := candidates[0].ZoneID
	distance := func(m *member) int {
		switch {
		case m.liveness.isSilent():
			return 2
		case m.ZoneID != zone:
			return 1
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(candidates), func(a, b *member) int {
		return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(a.load, b.load))
	})
}
