package agent

import (
	"context"
	"maps"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
)

// told is what the server was last told about an account's feeds themselves.
// It is told again after a lost connection: another agent may have reported the
// account since, and have said other things.
type told struct {
	box     *outbox.Box
	account vedette.AccountName

	// Held while a record is put, so that none is overtaken by an older one. What
	// is put is small, one of each sort per feed, and never waits for room.
	mu          sync.Mutex
	declaration []byte // nil before the first
	feeds       map[vedette.Feed]bool
	states      map[vedette.Feed][]byte
}

// declare puts a declaration. What waits of other feeds is void.
func (t *told) declare(ctx context.Context, feeds map[vedette.Feed]bool, record []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.declaration, t.feeds = record, feeds
	maps.DeleteFunc(t.states, func(f vedette.Feed, _ []byte) bool { return !feeds[f] })
	return t.declareLocked(ctx)
}

func (t *told) declareLocked(ctx context.Context) error {
	t.box.Retain(t.account, t.feeds)
	return t.box.Put(ctx, outbox.Change{Account: t.account, Lane: outbox.Control, Key: "declare", Record: t.declaration})
}

// state puts the status of a feed.
func (t *told) state(ctx context.Context, feed vedette.Feed, record []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.states == nil {
		t.states = map[vedette.Feed][]byte{}
	}
	t.states[feed] = record
	return t.stateLocked(ctx, feed)
}

func (t *told) stateLocked(ctx context.Context, feed vedette.Feed) error {
	return t.box.Put(ctx, outbox.Change{Account: t.account, Feed: feed, Lane: outbox.Control, Key: statusKey, Record: t.states[feed]})
}

// again puts all of it once more.
func (t *told) again(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.declaration == nil {
		return nil
	}
	if err := t.declareLocked(ctx); err != nil {
		return err
	}
	for feed := range t.states {
		if err := t.stateLocked(ctx, feed); err != nil {
			return err
		}
	}
	return nil
}
