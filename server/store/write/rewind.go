package write

import (
	"context"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// detectRewind returns those of a batch's feeds whose snapshot ends at an older version than
// the feed's mark before it, and clears their marks.
func (w *Writer) detectRewind(b *commit.Batch) (feeds []vedette.Feed) {
	for i := range b.Feeds {
		u := &b.Feeds[i]
		from, to, rewound := w.writeThrough.Rewound(b.Account, u.Feed, u.SnapshotMark)
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
func invalidateFeedObjects(ctx context.Context, tx *sqldb.Tx, accountID int64, feed catalog.Feed) error {
	where, args := ofFeed(accountID, feed)
	_, err := tx.Exec(ctx, sqldb.Named("invalidate the objects of a feed", `UPDATE objects SET version = '' WHERE `+where), args...)
	return err
}

// ofFeed returns the condition for rows of objects of a feed, and its arguments.
func ofFeed(accountID int64, feed catalog.Feed) (where string, args []any) {
	where, args = `account_id = ? AND kind_id = ?`, []any{accountID, feed.KindID}
	if feed.Namespace != "" {
		where, args = where+` AND namespace = ?`, append(args, feed.Namespace)
	}
	return where, args
}
