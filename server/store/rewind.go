package store

import (
	"context"
	"fmt"

	"github.com/vedette-io/vedette"
)

// ErrRewound means that a cluster reports an older state than before,
// for example because etcd was restored from a backup. The cluster may use a resourceVersion
// again for other content, so the feed loses its mark, and its next snapshot reports all of
// its objects.
var ErrRewound = vedette.Errorf(vedette.Conflict, "the cluster has gone back to an earlier state, as when etcd is restored from a backup")

// detectRewind returns those of a batch's feeds whose snapshot ends at an older version than
// the feed's mark before it, and clears their marks.
func (s *Store) detectRewind(b *Batch) (feeds []vedette.Feed) {
	for i := range b.Feeds {
		u := &b.Feeds[i]
		from, to, rewound := s.overlay.Rewound(b.Account, u.Feed, u.SnapshotMark)
		if !rewound {
			continue
		}
		var none vedette.Mark
		u.Mark, u.State = &none, vedette.FeedPending
		u.Message = fmt.Sprintf("the cluster has gone back from %d to %d, as when etcd is restored from a backup; all objects are read anew",
			from, to)
		feeds = append(feeds, u.Feed)
	}
	return feeds
}

// invalidateFeedObjects clears the versions of a feed's objects, so that its next snapshot
// reports each of them.
func invalidateFeedObjects(ctx context.Context, tx *transaction, accountID int64, feed feedKey) error {
	where, args := `account_id = ? AND kind_id = ?`, []any{accountID, feed.kindID}
	if feed.namespace != "" {
		where, args = where+` AND namespace = ?`, append(args, feed.namespace)
	}
	if _, err := tx.exec(ctx, `UPDATE objects SET version = '' WHERE `+where, args...); err != nil {
		return fmt.Errorf("invalidate the objects of a feed: %w", err)
	}
	return nil
}
