package outbox

import (
	"time"

	"github.com/vedette-io/vedette"
)

// Priority is the urgency of a change.
type Priority int

// The priorities, most urgent first. Changes of one feed keep their order whatever their
// priorities: a live change waits for the snapshot before it.
const (
	Control  Priority = iota // concerns a whole account; small, and later changes depend on it
	Live                     // a user may be waiting for it
	Deferred                 // nobody waits for it, as for a bookmark: it leaves with other changes, or after deferInterval
	Bulk                     // part of a snapshot
)

// Change is an encoded change of a feed, ready to be sent.
type Change struct {
	Account  vedette.AccountName
	Feed     vedette.Feed
	Priority Priority
	// Key identifies what changed. A later change of the feed with the same key replaces an
	// unsent one. A change with an empty key is never replaced.
	Key string
	// Question means that the server answers when everything before is stored. So what comes later
	// replaces nothing before it.
	Question bool
	// Mark is the feed's mark once the change is stored; empty if it does not advance the mark.
	Mark vedette.Mark
	// IsBookmark means that nothing changes but the mark. The server may keep such a mark in memory only.
	IsBookmark bool
	Record     []byte       // owned by the box from Put on
	Term       vedette.Term // the term of the account, set by Take

	putAt, takenAt time.Time
	queue          *queue // the queue that contains it
}

// size is how much of the box's budget a change uses: its bytes plus the overhead of the
// box.
func (c *Change) size() int { return len(c.Record) + len(c.Key) + 160 }
