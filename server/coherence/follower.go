package coherence

import (
	"time"

	"github.com/vedette-io/vedette"
)

// follower decides when what this server knows of another one is current. It does no I/O and reads no clock.
type follower struct {
	sent      map[uint64]time.Time // pings that are not answered, and when each was sent
	last      uint64
	since     time.Time // when the last answered ping was sent; zero before the first
	confirmed uint64    // position up to which all was taken in

	wanted       uint64 // the first of the last pings that all want changes; 0 if the last one does not
	hears        bool   // one of these was answered: the changes of the other server come
	missesChange bool   // a reader of live events began before they came
}

// reported is what another server has said about the accounts that its agents report.
type reported map[vedette.AccountName]Report

// reportsInterval is how often a server asks others for reports.
const reportsInterval = 2 * time.Second

// ping returns the next ping, which wants changes or not. Few wait for an answer: if the other server is frozen, the oldest are forgotten.
func (f *follower) ping(now time.Time, wantsChanges bool) Ping {
	f.last++
	switch {
	case !wantsChanges:
		f.wanted = 0
		f.hears, f.missesChange = false, false
	case f.wanted == 0:
		f.wanted = f.last
	}
	if f.sent == nil {
		f.sent = map[uint64]time.Time{}
	}
	f.sent[f.last] = now
	const maxWaiting = 16
	delete(f.sent, f.last-maxWaiting)
	return Ping{ID: f.last, Confirmed: f.confirmed, WantsChanges: wantsChanges}
}

// taken records that everything before a position was taken in, and the answer to a ping, if there was one. It returns when the ping was
// sent. An answer to a ping that was never sent, or twice, is ignored.
func (f *follower) taken(position, pong uint64) (sent time.Time, isAnswer bool) {
	f.confirmed = max(f.confirmed, position)
	sent, isAnswer = f.sent[pong]
	if !isAnswer {
		return sent, false
	}
	for id := range f.sent {
		if id <= pong {
			delete(f.sent, id)
		}
	}
	if sent.After(f.since) {
		f.since = sent
	}
	f.hears = f.hears || f.wanted != 0 && pong >= f.wanted
	return sent, true
}

// takeMissed reports whether changes may be missing that a reader of live events waits for, which come from now on.
func (f *follower) takeMissed() bool {
	isMissed := f.hears && f.missesChange
	f.missesChange = f.missesChange && !isMissed
	return isMissed
}
