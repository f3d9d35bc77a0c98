package write

import (
	"bytes"
	"context"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/versions"
	"github.com/vedette-io/vedette/server/store/writethrough"
)

// HasReached reports whether the server that writes the account, which may be another one, has stored a version of an object: that
// version or a newer one is stored, or the mark of the object's feed is not older. If so, it publishes the object as changed, so that
// the caches of this server read it again, and those of the other servers when the publication reaches them. The error is
// commit.ErrNoFeed if no feed reports the object.
func (w *Writer) HasReached(ctx context.Context, account vedette.AccountName, o vedette.ObjectVersion) (bool, error) {
	return w.sees(ctx, account, o.Key, func(mark vedette.Mark, row *storedRow) bool {
		return row != nil && writethrough.HasReached(row.version, o.Version) || writethrough.HasReached(string(mark), o.Version)
	})
}

// HasRemoved is HasReached for an object that is gone, see RemoveAbsent. If wasStored is true, the object with that uid was stored before:
// when it is not anymore, its feed has reported the end of it. Otherwise its feed may have yet to report that it was there.
func (w *Writer) HasRemoved(ctx context.Context, account vedette.AccountName, absent vedette.Absence, uid string, wasStored bool) (
	bool, error) {
	packed := codec.PackUID(uid)
	return w.sees(ctx, account, absent.Key, func(mark vedette.Mark, row *storedRow) bool {
		if row != nil && (uid == "" || bytes.Equal(row.uid, packed)) && !writethrough.IsNewer(row.version, vedette.Mark(absent.Version)) {
			return false
		}
		return wasStored || writethrough.HasReached(string(mark), absent.Version)
	})
}

// sees reports what isReached reports of the mark of an object's feed and of its row, which is nil if there is none.
func (w *Writer) sees(ctx context.Context, account vedette.AccountName, key vedette.Key,
	isReached func(vedette.Mark, *storedRow) bool) (bool, error) {
	action := fmt.Sprintf("look for what is stored of %s of account %s", key, account)
	base, _, err := w.readBaselineAndTerm(ctx, account)
	if err != nil {
		return false, w.db.WrapError(action, err)
	}
	k, err := w.resolveRowKey(ctx, key, base.covered)
	if err != nil {
		return false, w.db.WrapError(action, err)
	}
	if err := w.lookup(ctx, base, []catalog.Key{k}, nil); err != nil {
		return false, w.db.WrapError(action, err)
	}
	feed, _ := base.covered.of(k)
	var row *storedRow
	if found, exists := base.existing[k]; exists {
		row = &found
	}
	if !isReached(base.marks[feed], row) {
		return false, nil
	}
	// The server that has written it tells the others, which may not have heard it yet. They hear this before they answer this server.
	e := &versions.Effect{Account: account, Clusters: true}
	if row == nil {
		e = versions.AccountEffect(account, true) // it is not known of which application the object was
	} else {
		e.AddObject(row.Application, k.KindID, k.Namespace, k.Name)
	}
	w.versions.PublishOutcome(e, nil)
	return true, nil
}
