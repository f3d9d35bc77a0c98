package write

import (
	"context"
	"fmt"

	"github.com/vedette-io/vedette/server/store/commit"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// ScanObjects calls yield with the objects of a feed, in portions, so that no feed is in memory as a
// whole. Unlike Index, it locks nothing: operations may write through meanwhile, and an object that they
// write may be in no portion or in two. An error of yield ends it and is returned.
func (w *Writer) ScanObjects(ctx context.Context, account vedette.AccountName, feed vedette.Feed,
	yield func([]commit.StoredObject) error) error {
	action := fmt.Sprintf("scan feed %s of account %s", feed, account)
	id, err := w.registry.AccountID(ctx, account)
	if err != nil {
		return w.db.WrapError(action, err)
	}
	kindID, ok, err := w.kinds.LookupID(ctx, feed.Kind)
	if err != nil || !ok {
		return w.db.WrapError(action, err)
	}
	return w.scanFeedRows(ctx, id, catalog.Feed{KindID: kindID, Namespace: feed.Namespace}, indexChunkSize, func(rows []indexRow) error {
		objects := make([]commit.StoredObject, len(rows))
		for i, r := range rows {
			objects[i] = commit.StoredObject{Digest: r.digest, Namespace: r.namespace, Name: r.name}
		}
		return yield(objects)
	})
}

// InvalidateFeed makes the next snapshot of a feed report each of its objects, because the
// cluster may have other content under the versions that are stored. What operations found out about its objects is forgotten,
// because it may be about the state before. It clears the mark, so that a
// snapshot of an earlier state is not a surprise: the error commit.ErrRewound would end the account's term.
func (w *Writer) InvalidateFeed(ctx context.Context, account vedette.AccountName, term vedette.Term, feed vedette.Feed) error {
	action := fmt.Sprintf("invalidate feed %s of account %s", feed, account)
	key, unlock, err := w.lockFeed(ctx, action, account, feed)
	if err != nil {
		return err
	}
	defer unlock()
	w.held.clear(account, feed)
	err = w.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		id, err := registry.LockAccountRow(ctx, tx, account, term)
		if err != nil {
			return err
		}
		if err := invalidateFeedObjects(ctx, tx, id, key); err != nil {
			return err
		}
		where, args := ofFeed(id, key)
		if err := forgetTombstones(ctx, tx, where, args...); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, sqldb.Named("clear the mark of a feed", `UPDATE feeds SET mark = '', previous_mark = '' WHERE account_id = ? AND kind_id = ? AND namespace = ?`), id, key.KindID, key.Namespace)
		return err
	})
	if err == nil {
		w.writeThrough.ForgetFeed(account, feed) // it is about the state before
	}
	return w.db.WrapError(action, err)
}
