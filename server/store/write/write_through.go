package write

import (
	"bytes"
	"context"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/writethrough"
)

// WriteThrough stores an object as an operation's result shows it, before its
// feed reports it, and returns what changed. After it has returned, readers see that
// version or a newer one: every Commit of this process leaves out what the feed
// still reports from before.
//
// Nothing is written if what is stored is as new, or if nothing is stored and the feed
// has passed the version: the object is gone, or a newer change of it is on its
// way. An object whose resourceVersion is not a decimal number cannot be compared and is left
// to its feed. Marks do not change.
//
// The operation's end, which may be nil, is stored in the same transaction, and ended is
// true then: the caller waits for both, and two transactions would wait for the
// disk twice. If nothing is written, the end is left to EndOperations. The errors are
// those of Commit.
func (w *Writer) WriteThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, o vedette.Object,
	end *history.Operation) (changes []commit.Change, ended bool, err error) {
	action := fmt.Sprintf("write %s of account %s through", o.Key, account)
	if err := checkObject(&o); err != nil {
		return nil, false, fmt.Errorf("%s: %w", action, err)
	}
	changes, ended, err = w.applyWriteThrough(ctx, account, term, o.Key, end, func(p *plan, stored writethrough.Stored, _ *storedRow) {
		if w.writeThrough.Write(account, &o, stored) {
			p.batch.Upserts = []vedette.Object{o}
		}
	})
	return changes, ended, w.db.WrapError(action, err)
}

// RemoveThrough removes an object that an operation found gone, before its feed
// reports it, and returns what changed. Only the object with that uid is removed:
// another object that has taken the name stays. What the feed still
// reports about the uid is left out. Without a uid nothing is removed,
// because the name may be another object's. The end and the
// errors are those of WriteThrough.
func (w *Writer) RemoveThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, key vedette.Key, uid string,
	end *history.Operation) (changes []commit.Change, ended bool, err error) {
	return w.RemoveAbsent(ctx, account, term, vedette.Absence{Key: key}, uid, end)
}

// RemoveAbsent is RemoveThrough for an object of which is known up to which version its name is gone: what is stored of that
// version or an older one is removed, whatever its uid is, and what the feed still reports from before is left out. An object
// that was created later stays. The uid is empty if the operation has found no object.
func (w *Writer) RemoveAbsent(ctx context.Context, account vedette.AccountName, term vedette.Term, absent vedette.Absence, uid string,
	end *history.Operation) (changes []commit.Change, ended bool, err error) {
	action := fmt.Sprintf("remove %s of account %s through", absent.Key, account)
	decide := func(p *plan, stored writethrough.Stored, row *storedRow) {
		remove := w.writeThrough.RemoveAbsent(account, absent, stored)
		if uid != "" {
			if row != nil && bytes.Equal(row.uid, codec.PackUID(uid)) {
				remove = true
				// Nor is anything left of its predecessors.
				w.writeThrough.RemoveAbsent(account, vedette.Absence{Key: absent.Key, Version: row.version}, stored)
			}
			w.writeThrough.Remove(account, absent.Key, uid)
			p.tombstones = append(p.tombstones, uid)
		}
		if remove {
			p.batch.Deletes = []commit.Deletion{{Key: absent.Key}}
			p.tombstones = append(p.tombstones, codec.UnpackUID(row.uid))
		}
	}
	changes, ended, err = w.applyWriteThrough(ctx, account, term, absent.Key, end, decide)
	return changes, ended, w.db.WrapError(action, err)
}

// applyWriteThrough calls decide with what is stored of one object, and writes the plan that
// decide begins. What decide records of the write-through counts even if the transaction
// fails, because it is true of the cluster. The operation's end is written only if the batch
// changes anything; it may be nil.
func (w *Writer) applyWriteThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, key vedette.Key,
	end *history.Operation, decide func(*plan, writethrough.Stored, *storedRow)) (changes []commit.Change, ended bool, err error) {
	unlock, err := w.locks.Lock(ctx, account)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	if err := w.awaitOutcome(ctx, account, term); err != nil {
		return nil, false, err
	}
	base, err := w.readBaseline(ctx, account, term)
	if err != nil {
		return nil, false, err
	}
	if err := w.ensureTombstones(ctx, account, term, base.accountID); err != nil {
		return nil, false, err
	}
	k, err := w.resolveRowKey(ctx, key, base.covered)
	if err != nil {
		return nil, false, err
	}
	stored, row, err := w.readStored(ctx, base, k)
	if err != nil {
		return nil, false, err
	}
	p := newPlan(&commit.Batch{Account: account, Term: term}, base)
	decide(p, stored, row)
	p.tombstoneKey = k
	if p.operation = end; end != nil {
		if err := sqldb.CheckID("operation", string(end.ID)); err != nil {
			return nil, false, err
		}
	}
	if err := w.buildPlan(ctx, p, nil); err != nil {
		return nil, false, err
	}
	changes, err = w.writePlan(ctx, p, w.db.Write)
	w.noteNamespaces(account, changes, err)
	return changes, err == nil && end != nil && !p.isEmpty(), err
}

// readStored reads the row of an object, nil if there is none, and its feed's mark.
func (w *Writer) readStored(ctx context.Context, base *baseline, k catalog.Key) (writethrough.Stored, *storedRow, error) {
	if err := w.lookup(ctx, base, []catalog.Key{k}, nil); err != nil {
		return writethrough.Stored{}, nil, err
	}
	feed, _ := base.covered.of(k)
	stored := writethrough.Stored{Mark: base.marks[feed], PreviousMark: base.previous[feed]}
	row, exists := base.existing[k]
	if !exists {
		return stored, nil, nil
	}
	stored.Exists, stored.Version = true, row.version
	return stored, &row, nil
}

// Prioritize notes that an operation is in progress whose result will be written through
// to an account, until end is called. Until a moment after that, commits to the account,
// and to all accounts if the database takes one writer at a time, are split into small
// transactions, so that the result need not wait for a large one.
func (w *Writer) Prioritize(account vedette.AccountName) (end func()) {
	return w.operations.Begin(account)
}

// UID returns the uid and the resourceVersion of a stored object, or "" if it is not stored.
func (w *Writer) UID(ctx context.Context, account vedette.AccountName, key vedette.Key) (uid, version string, err error) {
	action := fmt.Sprintf("look up the uid of %s of account %s", key, account)
	kindID, ok, err := w.kinds.LookupID(ctx, key.Kind)
	if err != nil || !ok {
		return "", "", w.db.WrapError(action, err)
	}
	id, err := w.registry.AccountID(ctx, account)
	if err != nil {
		return "", "", w.db.WrapError(action, err)
	}
	var packed []byte
	err = w.dialect.lookup(ctx, w.db, id, []catalog.Key{{KindID: kindID, Namespace: key.Namespace, Name: key.Name}},
		func(r storedRow) { packed, version = r.uid, r.version })
	return codec.UnpackUID(packed), version, w.db.WrapError(action, err)
}
