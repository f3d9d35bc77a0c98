// Package evidence knows up to when a feed is complete, and why. It counts what was read of a watch, and when the API server has
// answered a request over the connection of that watch.
package evidence

import (
	"io"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

// Feed is up to when a feed is known to be complete, and why. A watch without events looks the same
// whether nothing happens, or its API server is frozen, or packets are dropped. So a watch proves
// nothing by itself, and neither do events: they may have been under way for long. What counts is a
// request over the connection of the watch: when it is answered, everything that happened before it was
// sent has arrived. It counts from when it was sent.
//
//	unknown ──list──> complete ──watch opened──> open ──probe sent and answered──> complete, later
//
// A feed that has no connection now stays complete up to where it was. A new process that continues
// from a mark knows nothing before its first proof.
type Feed struct {
	mu       sync.Mutex
	complete time.Time // zero if nothing is known
	// continues is set if the feed goes on from a mark, so that it was complete once, and nobody here knows when.
	continues bool
	openWatch
}

// openWatch is what is known of the watch that is open, or was open last.
type openWatch struct {
	opened time.Time // when the API server answered the request of the watch; zero while none is open
	conn   *kube.Conn
	// catching is since when the watch may bring what happened long ago; zero if it does not.
	catching time.Time
	// waiting is since when the reader waits for data; zero while it handles some.
	waiting time.Time
	busy    time.Time // since when it handles some
	// drained is when a read last returned less than it had room for, so that everything that had arrived was read, and taken the
	// same of reads whose data was handled since.
	drained, taken time.Time
	// read is how many bytes were read of the watch, newer what it was within the last roomDelay or later, and older what it was
	// before that.
	read         int64
	older, newer readMark
	// asked is what was read roomDelay before the last probe, and when that began. answered is the same of the last one that was answered.
	asked, answered readMark
	// held is since when proofs do not count, because the API server may have held something back; zero if they do.
	held time.Time
}

// readMark is how many bytes were read at a time.
type readMark struct {
	at   time.Time
	read int64
}

const (
	// fullWindow is how many bytes of a watch show that its window was full, or nearly so.
	fullWindow = kube.WatchWindow * 3 / 4
	// roomDelay is how long an API server may take to use the room in a window that was full.
	roomDelay = 50 * time.Millisecond
	// heldTime is for how long proofs do not count because windows are full. They may be full because a feed has many changes, and
	// not because they are late.
	heldTime = 5 * time.Second
	// ReaderDelay is how long the reader may take to begin with what has arrived.
	ReaderDelay = 10 * time.Millisecond
	// backlogGap is how old what a feed knew must be when its watch opens, for the watch to begin with many changes.
	backlogGap = 10 * time.Second
	// busyGap is for how long a reader may handle data before it counts as late. What it has not read fills the window of the watch,
	// and the API server keeps the rest.
	busyGap = time.Second
	// backlogTime is for how long a watch may bring what is late.
	backlogTime = 10 * time.Second
	// BacklogPause is how long such a watch must bring nothing to have brought all of it.
	BacklogPause = 500 * time.Millisecond
)

// Listed notes that the feed is complete as of a list that was requested at a time.
func (e *Feed) Listed(requested time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.complete = requested
}

// Forget notes that nothing is known any more, before the next watch is open, of a feed that goes on from a mark, which
// is empty if it begins anew.
func (e *Feed) Forget(mark vedette.Mark) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.complete = time.Time{}
	e.opened = time.Time{}
	e.conn = nil
	e.continues = mark != ""
}

// WasComplete reports whether the feed was complete before, even if nobody knows when.
func (e *Feed) WasComplete() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.continues || !e.complete.IsZero()
}

// Open notes that a watch is answered over conn, which is nil if the watch has a connection of its own.
func (e *Feed) Open(conn *kube.Conn, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.openWatch = openWatch{opened: now, conn: conn, busy: now}
	if now.Sub(e.complete) > backlogGap {
		e.catching = now
	}
}

// Close notes that the watch has ended. What was proven until then stays.
func (e *Feed) Close(account kube.Proof, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advanceLocked(account, now)
	e.opened = time.Time{}
	e.conn = nil
	e.waiting = time.Time{}
}

// Carrier returns the connection of the watch, and whether a watch is open.
func (e *Feed) Carrier() (conn *kube.Conn, isOpen bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.conn, !e.opened.IsZero()
}

// CompleteUntil returns up to when the feed is complete; zero if that is unknown. A watch with a
// connection of its own is believed as long as the account's API server answers over another one.
func (e *Feed) CompleteUntil(account kube.Proof, now time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advanceLocked(account, now)
	return e.complete
}

func (e *Feed) advanceLocked(account kube.Proof, now time.Time) {
	proof := account
	if e.conn != nil {
		proof = e.conn.LastProof()
	}
	if !proof.Sent.Before(e.asked.at) {
		e.answered = e.asked
	}
	isNews := !e.opened.IsZero() && proof.Sent.After(e.opened) && proof.Sent.After(e.complete)
	if isNews && !e.isCatchingUpLocked(now) && e.hasTakenLocked(proof.Answered, now) && !e.mayBeHeldBackLocked(now) {
		e.complete, e.held = proof.Sent, time.Time{}
	}
}

// isCatchingUpLocked reports whether the watch may still bring what happened before it was opened, or while the reader was busy. The API
// server sends that beside the answer of a probe, and not before it.
func (e *Feed) isCatchingUpLocked(now time.Time) bool {
	isQuiet := !e.waiting.IsZero() && now.Sub(e.waiting) >= BacklogPause
	return !e.catching.IsZero() && now.Sub(e.catching) < backlogTime && !isQuiet
}

// Probing notes that a probe begins over a connection.
func (e *Feed) Probing(conn *kube.Conn, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn == conn {
		e.advanceLocked(kube.Proof{}, now) // by the probe before
		e.asked = readMark{now, e.readRoomDelayAgoLocked(now)}
	}
}

// readRoomDelayAgoLocked returns what was read roomDelay ago, or before.
func (e *Feed) readRoomDelayAgoLocked(now time.Time) int64 {
	switch {
	case now.Sub(e.busy) >= roomDelay:
		return e.read
	case now.Sub(e.newer.at) >= roomDelay:
		return e.newer.read
	}
	return e.older.read
}

// mayBeHeldBackLocked reports whether the API server may have held back, when it answered the last probe, what had happened before. It
// does that while it has sent as much as fits into the window of the watch, and some moments longer. All of that arrives before the
// answer, and after the probe began: what was read before has made room by then. So if less was read since, nothing was held back.
func (e *Feed) mayBeHeldBackLocked(now time.Time) bool {
	switch {
	case e.conn == nil: // HTTP/1.1 has no windows
		return false
	case e.read-e.answered.read < fullWindow:
		return false
	case e.held.IsZero():
		e.held = now
	}
	return now.Sub(e.held) < heldTime
}

// hasTakenLocked reports whether the reader has handled everything that had arrived at a time. That it waits does not show it: it
// begins to wait also if there is more.
func (e *Feed) hasTakenLocked(at, now time.Time) bool {
	if e.taken.After(at) {
		return true
	}
	return !e.waiting.IsZero() && now.Sub(e.waiting) >= ReaderDelay && now.Sub(at) >= ReaderDelay
}

func (e *Feed) BeginRead(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting, e.taken = now, e.drained
	if now.Sub(e.busy) >= busyGap && now.Sub(e.catching) >= backlogTime {
		e.catching = now
	}
	if e.conn != nil {
		e.advanceLocked(kube.Proof{}, now) // before a busy watch has read a window more
	}
}

// EndRead notes that a read of n bytes has ended. isShort means that there was room for more.
func (e *Feed) EndRead(n int, isShort bool, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now.Sub(e.newer.at) >= roomDelay {
		e.older, e.newer = e.newer, readMark{now, e.read}
		if now.Sub(e.busy) >= roomDelay {
			e.older = e.newer // nothing was read between
		}
	}
	e.read += int64(n)
	e.waiting, e.busy = time.Time{}, now
	if isShort {
		e.drained = now
	}
}

// reader tells a Feed when it waits.
type reader struct {
	io.Reader
	feed *Feed
}

// Reader returns a reader of the open watch.
func (e *Feed) Reader(body io.Reader) io.Reader { return reader{body, e} }

func (r reader) Read(p []byte) (int, error) {
	r.feed.BeginRead(time.Now())
	n, err := r.Reader.Read(p)
	r.feed.EndRead(n, n < len(p), time.Now())
	return n, err
}
