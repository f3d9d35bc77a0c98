package outbox

import (
	"time"

	"github.com/vedette-io/vedette"
)

// Priority is how urgent a change is.
type Priority int

// The lanes, most urgent first. Within a feed the order of changes is kept
// whatever their lanes: a live change waits for the snapshot before it.
const (
	Control Priority = iota // of a whole account; small, and what follows depends on it
	Live                    // someone may be waiting for it
	Bulk                    // part of a snapshot
)

// Change is one step of a feed, encoded and ready to be sent.
type Change struct {
	Account  vedette.AccountName
	Feed     vedette.Feed
	Priority Priority
	// Key says what the change is about. A later change of a feed with the same
	// key takes the place of one that was not sent yet. Empty: never replaced.
	Key string
	// Mark is the feed's mark once the change is stored; empty where it moves none.
	Mark   vedette.Mark
	Record []byte       // owned by the box from Put on
	Term   vedette.Term // the account's, set by Take

	putAt, takenAt time.Time
	queue          *queue // that it was put into
}

// size is what a change counts in the box's budget: its bytes and what the box
// itself needs to keep it.
func (c *Change) size() int { return len(c.Record) + len(c.Key) + 160 }
