package agent

import (
	"context"
	"maps"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
)

// feedAnnouncements holds the last declaration and statuses of an account's feeds. They are
// sent again after a lost connection, because another agent may have reported the account
// and sent others.
type feedAnnouncements struct {
	box     *outbox.Box
	account vedette.AccountName

	// Held during Put, so that records are put in order. That does not block, because
	// these records are small, there is one of each type per feed, and they need no room.
	mu          sync.Mutex
	declaration []byte // nil before the first
	feeds       map[vedette.Feed]bool
	statuses    map[vedette.Feed][]byte
	states      map[vedette.Feed]vedette.FeedState // of the feeds with a status
}

// declare puts a declaration and drops the statuses of all other feeds.
func (t *feedAnnouncements) declare(ctx context.Context, feeds map[vedette.Feed]bool, record []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.declaration, t.feeds = record, feeds
	maps.DeleteFunc(t.statuses, func(f vedette.Feed, _ []byte) bool { return !feeds[f] })
	maps.DeleteFunc(t.states, func(f vedette.Feed, _ vedette.FeedState) bool { return !feeds[f] })
	return t.putDeclarationLocked(ctx)
}

func (t *feedAnnouncements) putDeclarationLocked(ctx context.Context) error {
	t.box.RetainFeeds(t.account, t.feeds)
	return t.box.Put(ctx, outbox.Change{Account: t.account, Priority: outbox.Control, Key: "declare", Record: t.declaration})
}

func (t *feedAnnouncements) setStatus(ctx context.Context, feed vedette.Feed, state vedette.FeedState, record []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.statuses == nil {
		t.statuses, t.states = map[vedette.Feed][]byte{}, map[vedette.Feed]vedette.FeedState{}
	}
	t.statuses[feed], t.states[feed] = record, state
	return t.putStatusLocked(ctx, feed)
}

func (t *feedAnnouncements) putStatusLocked(ctx context.Context, feed vedette.Feed) error {
	return t.box.Put(ctx, outbox.Change{Account: t.account, Feed: feed, Priority: outbox.Control, Key: statusKey, Record: t.statuses[feed]})
}

// countStates adds the feeds to a count by state. Feeds without a status are pending.
func (t *feedAnnouncements) countStates(counts map[vedette.FeedState]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for feed := range t.feeds {
		state, known := t.states[feed]
		if !known {
			state = vedette.FeedPending
		}
		counts[state]++
	}
}

// resend puts the declaration and all statuses again.
func (t *feedAnnouncements) resend(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.declaration == nil {
		return nil
	}
	if err := t.putDeclarationLocked(ctx); err != nil {
		return err
	}
	for feed := range t.statuses {
		if err := t.putStatusLocked(ctx, feed); err != nil {
			return err
		}
	}
	return nil
}
