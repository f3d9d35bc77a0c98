package assignment

import (
	"cmp"
	"maps"
)

// ChangeReason is why an account got another cacher.
type ChangeReason string

// The reasons. These values are part of the metrics.
const (
	ReasonJoined   ChangeReason = "joined"   // no agent reported the account
	ReasonLeft     ChangeReason = "left"     // the cacher disconnected, or its configuration no longer has the account
	ReasonRejected ChangeReason = "rejected" // the registration or the writes of the cacher were rejected
	ReasonSilent   ChangeReason = "silent"   // a standby took over from a silent agent
	ReasonBalance  ChangeReason = "balance"  // the account was moved to balance agents
	ReasonReturned ChangeReason = "returned" // the account was moved back, because it was not up to date after its move
	ReasonDrained  ChangeReason = "drained"  // the server of its cacher stops, and an agent of this one took over
)

var changeReasons = []ChangeReason{ReasonJoined, ReasonLeft, ReasonRejected, ReasonSilent, ReasonBalance, ReasonReturned, ReasonDrained}

// CacherChanges counts the changes of cachers for one reason.
type CacherChanges struct {
	Done   int64 // accounts that got another cacher
	Failed int64 // attempts that failed, for example because the database did not answer; the next one counts anew
}

// CacherChanges returns how many accounts got another cacher since the server started, for each
// reason.
func (f *Fleet) CacherChanges() map[ChangeReason]CacherChanges {
	counts := maps.Clone(f.changes)
	for _, reason := range changeReasons {
		counts[reason] = f.changes[reason]
	}
	return counts
}

// cacherGap is why an account has no cacher, or is about to get another one. The zero value is for an account that
// no agent reports.
type cacherGap struct {
	reason ChangeReason
	former MemberID // the cacher while the store is asked for a new term; 0 if it has left
}

func (g cacherGap) reasonOrJoined() ChangeReason { return cmp.Or(g.reason, ReasonJoined) }

// noteGap notes why the cacher has left. Without a standby, the reason of the next change is ReasonJoined.
func (f *Fleet) noteGap(a *account, m *member, reason ChangeReason) {
	if m.id != a.cacher && m.id != a.gap.former {
		return
	}
	a.gap = cacherGap{}
	if len(a.candidates) > 0 {
		a.gap.reason = reason
	}
}

// countChange counts that an agent has become the cacher. A cacher that was assigned again is no change.
func (f *Fleet) countChange(a *account, m *member) {
	if a.gap.former != m.id {
		count := f.changes[a.gap.reasonOrJoined()]
		count.Done++
		f.changes[a.gap.reasonOrJoined()] = count
	}
	a.gap = cacherGap{}
}

// countFailure counts an attempt to assign a cacher that failed.
func (f *Fleet) countFailure(a *account) {
	count := f.changes[a.gap.reasonOrJoined()]
	count.Failed++
	f.changes[a.gap.reasonOrJoined()] = count
}
