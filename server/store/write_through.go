package store

import (
	"bytes"
	"context"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/overlay"
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
func (s *Store) WriteThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, o vedette.Object,
	end *OperationRow) (changes []Change, ended bool, err error) {
	action := fmt.Sprintf("write %s of account %s through", o.Key, account)
	if err := checkObject(&o); err != nil {
		return nil, false, fmt.Errorf("%s: %w", action, err)
	}
	changes, ended, err = s.applyWriteThrough(ctx, account, term, o.Key, end, func(stored overlay.Stored, _ *storedRow, b *Batch) {
		if s.overlay.Write(account, &o, stored) {
			b.Upserts = []vedette.Object{o}
		}
	})
	return changes, ended, s.wrapError(action, err)
}

// RemoveThrough removes an object that an operation found gone, before its feed
// reports it, and returns what changed. Only the object with that uid is removed:
// another object that has taken the name stays. What the feed still
// reports about the uid is left out. Without a uid nothing is removed,
// because the name may be another object's. The end and the
// errors are those of WriteThrough.
func (s *Store) RemoveThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, key vedette.Key, uid string,
	end *OperationRow) (changes []Change, ended bool, err error) {
	action := fmt.Sprintf("remove %s of account %s through", key, account)
	changes, ended, err = s.applyWriteThrough(ctx, account, term, key, end, func(_ overlay.Stored, row *storedRow, b *Batch) {
		if uid == "" {
			return
		}
		if row != nil && bytes.Equal(row.uid, codec.PackUID(uid)) {
			b.Deletes = []Deletion{{Key: key}}
		}
		s.overlay.Remove(account, key, uid)
	})
	return changes, ended, s.wrapError(action, err)
}

// applyWriteThrough calls decide with what is stored of one object, and writes the batch that
// decide fills. What decide records in the overlay counts even if the transaction
// fails, because it is true of the cluster. The operation's end is written only if the batch
// changes anything; it may be nil.
func (s *Store) applyWriteThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, key vedette.Key,
	end *OperationRow, decide func(overlay.Stored, *storedRow, *Batch)) (changes []Change, ended bool, err error) {
	unlock, err := s.locks.Lock(ctx, account)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	if err := s.awaitOutcome(ctx, account, term); err != nil {
		return nil, false, err
	}
	base, err := s.readBaseline(ctx, account, term)
	if err != nil {
		return nil, false, err
	}
	stored, row, err := s.readStored(ctx, base, key)
	if err != nil {
		return nil, false, err
	}
	b := Batch{Account: account, Term: term}
	decide(stored, row, &b)
	p := newPlan(&b, base)
	p.operationEnd, err = s.endValues(end)
	if err != nil {
		return nil, false, err
	}
	if err := s.buildPlan(ctx, p, nil); err != nil {
		return nil, false, err
	}
	changes, err = s.writePlan(ctx, p, s.write)
	s.noteNamespaces(account, changes, err)
	return changes, err == nil && p.operationEnd != nil && !p.isEmpty(), err
}

// readStored reads the row of an object, nil if there is none, and its feed's mark.
func (s *Store) readStored(ctx context.Context, base *baseline, key vedette.Key) (overlay.Stored, *storedRow, error) {
	k, err := s.resolveRowKey(ctx, key, base.covered)
	if err != nil {
		return overlay.Stored{}, nil, err
	}
	if err := s.lookup(ctx, base, []rowKey{k}, nil); err != nil {
		return overlay.Stored{}, nil, err
	}
	feed, _ := base.covered.of(k)
	row, exists := base.existing[k]
	if !exists {
		return overlay.Stored{Mark: base.marks[feed]}, nil, nil
	}
	return overlay.Stored{Exists: true, Version: row.version, Mark: base.marks[feed]}, &row, nil
}

// Prioritize notes that an operation is in progress whose result will be written through
// to an account, until end is called. Until a moment after that, commits to the account,
// and to all accounts if the database takes one writer at a time, are split into small
// transactions, so that the result need not wait for a large one.
func (s *Store) Prioritize(account vedette.AccountName) (end func()) {
	return s.priority.Begin(account)
}

// UID returns the uid of a stored object, or "" if it is not stored.
func (s *Store) UID(ctx context.Context, account vedette.AccountName, key vedette.Key) (string, error) {
	action := fmt.Sprintf("look up the uid of %s of account %s", key, account)
	kindID, ok, err := s.kinds.lookupID(ctx, s, key.Kind)
	if err != nil || !ok {
		return "", s.wrapError(action, err)
	}
	id, err := s.accountID(ctx, account)
	if err != nil {
		return "", s.wrapError(action, err)
	}
	var packed []byte
	err = s.dialect.lookup(ctx, s, id, []rowKey{{kindID, key.Namespace, key.Name}}, func(r storedRow) { packed = r.uid })
	return codec.UnpackUID(packed), s.wrapError(action, err)
}
