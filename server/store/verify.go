package store

import (
	"context"
	"fmt"

	"github.com/vedette-io/vedette"
)

// StoredObject is what a verification compares of an object.
type StoredObject struct {
	Digest          uint64
	Namespace, Name string
}

// ScanObjects calls yield with the objects of a feed, in portions, so that no feed is in memory as a
// whole. Unlike Index, it locks nothing: operations may write through meanwhile, and an object that they
// write may be in no portion or in two. An error of yield ends it and is returned.
func (s *Store) ScanObjects(ctx context.Context, account vedette.AccountName, feed vedette.Feed, yield func([]StoredObject) error) error {
	action := fmt.Sprintf("scan feed %s of account %s", feed, account)
	id, err := s.accountID(ctx, account)
	if err != nil {
		return s.wrapError(action, err)
	}
	kindID, ok, err := s.kinds.lookupID(ctx, s, feed.Kind)
	if err != nil || !ok {
		return s.wrapError(action, err)
	}
	return s.scanFeedRows(ctx, id, feedKey{kindID, feed.Namespace}, indexChunkSize, func(rows []indexRow) error {
		objects := make([]StoredObject, len(rows))
		for i, r := range rows {
			objects[i] = StoredObject{r.digest, r.namespace, r.name}
		}
		return yield(objects)
	})
}

// InvalidateFeed makes the next snapshot of a feed report each of its objects, because the
// cluster may have other content under the versions that are stored. It clears the mark, so that a
// snapshot of an earlier state is not a surprise: the error ErrRewound would end the account's term.
func (s *Store) InvalidateFeed(ctx context.Context, account vedette.AccountName, term vedette.Term, feed vedette.Feed) error {
	action := fmt.Sprintf("invalidate feed %s of account %s", feed, account)
	key, unlock, err := s.lockFeed(ctx, action, account, feed)
	if err != nil {
		return err
	}
	defer unlock()
	err = s.write(ctx, func(ctx context.Context, tx *transaction) error {
		id, err := lockAccountRow(ctx, tx, account, term)
		if err != nil {
			return err
		}
		if err := invalidateFeedObjects(ctx, tx, id, key); err != nil {
			return err
		}
		_, err = tx.exec(ctx, `UPDATE feeds SET mark = '' WHERE account_id = ? AND kind_id = ? AND namespace = ?`, id, key.kindID, key.namespace)
		return err
	})
	if err == nil {
		s.overlay.Forget(account) // it is about the state before
	}
	return s.wrapError(action, err)
}
