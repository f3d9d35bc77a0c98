package store

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/vedette-io/vedette"
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
	deed := fmt.Sprintf("write %s of account %s through", o.Key, account)
	if err := checkObject(&o); err != nil {
		return nil, false, fmt.Errorf("%s: %w", deed, err)
	}
	changes, ended, err = s.through(ctx, account, term, o.Key, o.UID, end, func(at *standing, b *Batch) {
		write, kept := at.write(&o)
		if write {
			b.Upserts = []vedette.Object{o}
		}
		if kept != nil {
			s.floors.raise(account, o.Key, *kept)
		}
	})
	return changes, ended, s.explain(deed, err)
}

// RemoveThrough removes an object that an operation saw gone, before its feed
// tells it, and returns what changed. It is removed only if it is the one with
// that uid: an object that took the name meanwhile stays. What the feed still
// tells of the one that has gone is left out. Without a uid nothing is removed,
// since a name alone does not say which of its bearers has gone. The end and the
// errors are those of WriteThrough.
func (s *Store) RemoveThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, key vedette.Key, uid string, end *OperationRow) (changes []Change, ended bool, err error) {
	deed := fmt.Sprintf("remove %s of account %s through", key, account)
	changes, ended, err = s.through(ctx, account, term, key, uid, end, func(at *standing, b *Batch) {
		if uid == "" {
			return
		}
		if at.row != nil && bytes.Equal(at.row.uid, packUID(uid)) {
			b.Deletes = []Deletion{{Key: key}}
		}
		s.floors.bury(account, uid, tomb{key: key, made: time.Now()})
	})
	return changes, ended, s.explain(deed, err)
}

// UID returns the uid of an object as it is stored, empty where none is.
func (s *Store) UID(ctx context.Context, account vedette.AccountName, key vedette.Key) (string, error) {
	deed := fmt.Sprintf("look up the uid of %s of account %s", key, account)
	kind, ok, err := s.kinds.find(ctx, s, key.Kind)
	if err != nil || !ok {
		return "", s.explain(deed, err)
	}
	id, err := s.accountID(ctx, account)
	if err != nil {
		return "", s.explain(deed, err)
	}
	var packed []byte
	err = s.dialect.lookup(ctx, s, id, []rowKey{{kind, key.Namespace, key.Name}}, func(r storedRow) { packed = r.uid })
	return unpackUID(packed), s.explain(deed, err)
}

// standing is what is known of an object when an operation tells of it.
type standing struct {
	key     vedette.Key
	row     *storedRow // nil where none is stored
	mark    string     // of the object's feed; empty where it has none, as in a snapshot
	listing *listing   // the snapshot that is under way; may be nil
	floor   *floor     // may be nil
	buried  bool       // the one that the operation tells of has gone
}

// write says whether to store an object, and which floor it has then; nil for
// none that is new.
func (at *standing) write(o *vedette.Object) (bool, *floor) {
	version, ok := versionNumber(o.ResourceVersion)
	switch {
	case !ok || at.buried:
		return false, nil
	case at.row != nil && at.row.version != "" && !before(at.row.version, version): // it is empty where it must be told anew
		return false, nil
	case at.row == nil && at.hasPassed(version):
		return false, nil
	case reaches(at.mark, version):
		return true, nil // what the feed tells from now on is newer
	}
	kept := floor{uid: o.UID, version: version}
	if at.floor != nil {
		kept.version, kept.word = max(version, at.floor.version), at.floor.word
	}
	if at.listing.beyond(at.key) && kept.word == nil {
		// The snapshot can't name in a Drop what it does not know to be stored. Unless
		// it tells the object, it did not find it.
		kept.word = &word{}
	}
	return true, &kept
}

// hasPassed reports whether the feed may have told already that an object of this
// version has gone.
func (at *standing) hasPassed(version uint64) bool {
	mark := at.mark
	if mark == "" && at.listing != nil {
		mark = string(at.listing.from)
	}
	return mark != "" && !before(mark, version)
}

// through lets decide say what to do about one object, and does it. What decide
// makes known is so before anything is written: it is true of the cluster,
// whatever becomes of the transaction. The operation's end goes along where there is
// anything to write; it may be nil.
func (s *Store) through(ctx context.Context, account vedette.AccountName, term vedette.Term, key vedette.Key, uid string,
	end *OperationRow, decide func(*standing, *Batch)) (changes []Change, ended bool, err error) {
	leave, err := s.gates.enter(ctx, account)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	if err := s.settle(ctx, account, term); err != nil {
		return nil, false, err
	}
	b := Batch{Account: account, Term: term}
	held, err := s.holdings(ctx, account, term)
	if err != nil {
		return nil, false, err
	}
	at, err := s.standing(ctx, account, held, key, uid)
	if err != nil {
		return nil, false, err
	}
	decide(at, &b)
	p := newPlan(&b, held)
	if p.end, err = s.endOf(end); err != nil {
		return nil, false, err
	}
	changes, err = s.carryOut(ctx, p, nil, s.write)
	return changes, err == nil && p.end != nil && !p.idle(), err
}

func (s *Store) standing(ctx context.Context, account vedette.AccountName, held *holdings, key vedette.Key, uid string) (*standing, error) {
	k, err := s.rowKey(ctx, key, held.covered)
	if err != nil {
		return nil, err
	}
	at := s.floors.standing(account, key, uid)
	feed, _ := held.covered.of(k)
	at.mark = held.marks[feed]
	err = s.lookup(ctx, held, []rowKey{k}, nil)
	if row, ok := held.there[k]; ok {
		at.row = &row
	}
	return at, err
}
