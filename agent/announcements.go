package agent

import (
	"context"
	"maps"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
)

// feedAnnouncements is what the server was last told about an account's feeds themselves.
// It is told again after a lost connection: another agent may have reported the
// account since, and have said other things.
type feedAnnouncements struct {
	box     *outbox.Box
	account vedette.AccountName

	// Held while a record is put, so that none is overtaken by an older one. What
	// is put is small, one of each sort per feed, and never waits for room.
	mu          sync.Mutex
	declaration []byte // nil before the first
	feeds       map[vedette.Feed]bool
	statuses    map[vedette.Feed][]byte
}

// declare puts a declaration. What waits of other feeds is void.
func (t *feedAnnouncements) declare(ctx context.Context, feeds map[vedette.Feed]bool, record []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.declaration, t.feeds = record, feeds
	maps.DeleteFunc(t.statuses, func(f vedette.Feed, _ []byte) bool { return !feeds[f] })
	return t.putDeclarationLocked(ctx)
}

func (t *feedAnnouncements) putDeclarationLocked(ctx context.Context) error {
	t.box.RetainFeeds(t.account, t.feeds)
	return t.box.Put(ctx, outbox.Change{Account: t.account, Priority: outbox.Control, Key: "declare", Record: t.declaration})
}

// setStatus puts the status of a feed.
func (t *feedAnnouncements) setStatus(ctx context.Context, feed vedette.Feed, record []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.statuses == nil {
		t.statuses = map[vedette.Feed][]byte{}
	}
	t.statuses[feed] = record
	return t.putStatusLocked(ctx, feed)
}

func (t *feedAnnouncements) putStatusLocked(ctx context.Context, feed vedette.Feed) error {
	return t.box.Put(ctx, outbox.Change{Account: t.account, Feed: feed, Priority: outbox.Control, Key: statusKey, Record: t.statuses[feed]})
}

// resend puts all of it once more.
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
