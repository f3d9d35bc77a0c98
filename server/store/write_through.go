package store

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/codec"
)

// WriteThrough stores an object as an operation's result shows it, before its
// feed tells it, and returns what changed. From its return on a reader sees that
// version or a newer one, and what the feed still tells from before is left out,
// by every Commit of this process.
//
// Nothing is written where what is stored is as new, nor where nothing is stored
// and the feed has passed the version: the object has gone since, or a newer
// change of it is on its way. A resourceVersion that is not a decimal number
// can't be compared; an object that has one is left to its feed. No mark moves.
//
// The operation's end, which may be nil, goes into the same transaction, and ended is
// true then: who is answered waits for both, and two transactions would wait for the
// disk twice. Where nothing is written it is left to EndOperations. The errors are
// those of Commit.
func (s *Store) WriteThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, o vedette.Object, end *OperationRow) (changes []Change, ended bool, err error) {
	action := fmt.Sprintf("write %s of account %s through", o.Key, account)
	if err := checkObject(&o); err != nil {
		return nil, false, fmt.Errorf("%s: %w", action, err)
	}
	changes, ended, err = s.applyWriteThrough(ctx, account, term, o.Key, o.UID, end, func(state *objectState, b *Batch) {
		write, newFloor := state.decideWrite(&o)
		if write {
			b.Upserts = []vedette.Object{o}
		}
		if newFloor != nil {
			s.overlays.setFloor(account, o.Key, *newFloor)
		}
	})
	return changes, ended, s.wrapError(action, err)
}

// RemoveThrough removes an object that an operation saw gone, before its feed
// tells it, and returns what changed. It is removed only if it is the one with
// that uid: an object that took the name meanwhile stays. What the feed still
// tells of the one that has gone is left out. Without a uid nothing is removed,
// since a name alone does not say which of its bearers has gone. The end and the
// errors are those of WriteThrough.
func (s *Store) RemoveThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, key vedette.Key, uid string, end *OperationRow) (changes []Change, ended bool, err error) {
	action := fmt.Sprintf("remove %s of account %s through", key, account)
	changes, ended, err = s.applyWriteThrough(ctx, account, term, key, uid, end, func(state *objectState, b *Batch) {
		if uid == "" {
			return
		}
		if state.row != nil && bytes.Equal(state.row.uid, codec.PackUID(uid)) {
			b.Deletes = []Deletion{{Key: key}}
		}
		s.overlays.addTombstone(account, uid, tombstone{key: key, createdAt: time.Now()})
	})
	return changes, ended, s.wrapError(action, err)
}

// Prioritize notes that an operation is in progress whose result will be written through
// to an account, until end is called. Until a moment after that, commits to the account,
// and to all accounts if the database takes one writer at a time, are split into small
// transactions, so that the result need not wait for a large one.
func (s *Store) Prioritize(account vedette.AccountName) (end func()) {
	return s.priority.Begin(account)
}

// UID returns the uid of an object as it is stored, empty where none is.
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

// objectState is what is known of an object when an operation tells of it.
type objectState struct {
	key      vedette.Key
	row      *storedRow    // nil where none is stored
	mark     string        // of the object's feed; empty where it has none, as in a snapshot
	snapshot *feedSnapshot // the snapshot that is under way; may be nil
	floor    *versionFloor // may be nil
	deleted  bool          // the one that the operation tells of has gone
}

// decideWrite says whether to store an object, and which floor it has then; nil for
// none that is new.
func (state *objectState) decideWrite(o *vedette.Object) (bool, *versionFloor) {
	version, ok := parseVersion(o.ResourceVersion)
	switch {
	case !ok || state.deleted:
		return false, nil
	case state.row != nil && state.row.version != "" && !olderThan(state.row.version, version): // it is empty where it must be told anew
		return false, nil
	case state.row == nil && state.feedPassed(version):
		return false, nil
	case atLeast(state.mark, version):
		return true, nil // what the feed tells from now on is newer
	}
	newFloor := versionFloor{uid: o.UID, version: version}
	if state.floor != nil {
		newFloor.version, newFloor.claim = max(version, state.floor.version), state.floor.claim
	}
	if state.snapshot.indexPassed(state.key) && newFloor.claim == nil {
		// The snapshot can't name in a Drop what it does not know to be stored. Unless
		// it tells the object, it did not find it.
		newFloor.claim = &claim{}
	}
	return true, &newFloor
}

// feedPassed reports whether the feed may have told already that an object of this
// version has gone.
func (state *objectState) feedPassed(version uint64) bool {
	mark := state.mark
	if mark == "" && state.snapshot != nil {
		mark = string(state.snapshot.previousMark)
	}
	return mark != "" && !olderThan(mark, version)
}

// applyWriteThrough lets decide say what to do about one object, and does it. What decide
// makes known is so before anything is written: it is true of the cluster,
// whatever becomes of the transaction. The operation's end goes along where there is
// anything to write; it may be nil.
func (s *Store) applyWriteThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, key vedette.Key, uid string,
	end *OperationRow, decide func(*objectState, *Batch)) (changes []Change, ended bool, err error) {
	unlock, err := s.locks.Lock(ctx, account)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	if err := s.awaitOutcome(ctx, account, term); err != nil {
		return nil, false, err
	}
	b := Batch{Account: account, Term: term}
	base, err := s.readBaseline(ctx, account, term)
	if err != nil {
		return nil, false, err
	}
	state, err := s.objectState(ctx, account, base, key, uid)
	if err != nil {
		return nil, false, err
	}
	decide(state, &b)
	p := newPlan(&b, base)
	if p.operationEnd, err = s.endValues(end); err != nil {
		return nil, false, err
	}
	changes, err = s.executePlan(ctx, p, nil, s.write)
	return changes, err == nil && p.operationEnd != nil && !p.isEmpty(), err
}

func (s *Store) objectState(ctx context.Context, account vedette.AccountName, base *baseline, key vedette.Key, uid string) (*objectState, error) {
	k, err := s.resolveRowKey(ctx, key, base.covered)
	if err != nil {
		return nil, err
	}
	state := s.overlays.objectState(account, key, uid)
	feed, _ := base.covered.of(k)
	state.mark = base.marks[feed]
	err = s.lookup(ctx, base, []rowKey{k}, nil)
	if row, ok := base.existing[k]; ok {
		state.row = &row
	}
	return state, err
}
