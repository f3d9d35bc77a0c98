package store

import (
	"context"
	"fmt"

	"github.com/vedette-io/vedette"
)

// ErrRewound says that a cluster tells a state from before what it has told already,
// as it does when etcd was restored from a backup. A resourceVersion that comes once
// more may stand for another content then, so nothing of the feed counts as known any
// more: it has no mark, and its next snapshot brings all of its objects.
var ErrRewound = vedette.Errorf(vedette.Conflict, "the cluster has gone back to an earlier state, as when etcd is restored from a backup")

// detectRewind finds those of a batch's feeds whose snapshot ends at a version that is older
// than the mark that the feed had before it, and leaves them without a mark. Versions
// that can't be compared say nothing.
func (s *Store) detectRewind(b *Batch) (feeds []vedette.Feed) {
	for i := range b.Feeds {
		u := &b.Feeds[i]
		listed, ok := parseVersion(string(u.SnapshotMark))
		previous, known := parseVersion(string(s.overlays.markBeforeSnapshot(b.Account, u.Feed)))
		if !ok || !known || listed == 0 || listed >= previous {
			continue
		}
		var none vedette.Mark
		u.Mark, u.State = &none, vedette.FeedPending
		u.Message = fmt.Sprintf("the cluster has gone back from %d to %d, as when etcd is restored from a backup; all objects are read anew", previous, listed)
		feeds = append(feeds, u.Feed)
	}
	return feeds
}

// markBeforeSnapshot returns the mark that a feed had before the snapshot that is under way.
func (o *overlays) markBeforeSnapshot(account vedette.AccountName, feed vedette.Feed) vedette.Mark {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ov := o.accounts[account]; ov != nil && ov.snapshots[feed] != nil {
		return ov.snapshots[feed].previousMark
	}
	return ""
}

// invalidateFeedObjects makes a feed's next snapshot bring each of its objects.
func invalidateFeedObjects(ctx context.Context, tx *transaction, accountID int64, feed feedKey) error {
	where, args := `account_id = ? AND kind_id = ?`, []any{accountID, feed.kindID}
	if feed.namespace != "" {
		where, args = where+` AND namespace = ?`, append(args, feed.namespace)
	}
	if _, err := tx.exec(ctx, `UPDATE objects SET version = '' WHERE `+where, args...); err != nil {
		return fmt.Errorf("void the objects of a feed: %w", err)
	}
	return nil
}
