package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
)

// Commit writes a batch and returns what really changed. An object that is stored
// with the same uid and resourceVersion is not written again and not reported.
// What is older than what an operation wrote through is left out, as WriteThrough
// says. It takes one transaction, or several while somebody hurries, as MakeWay
// says; marks are in the last. The error is ErrTerm where another agent has taken
// the account, ErrNoAccount where it is gone, and ErrRewound; what is returned with an error
// has changed all the same.
func (s *Store) Commit(ctx context.Context, b Batch) ([]Change, error) {
	deed := "commit to account " + string(b.Account)
	// What can't be stored is not there to be deleted.
	b.Deletes = slices.DeleteFunc(slices.Clone(b.Deletes), func(d Deletion) bool { return checkKey(d.Key) != nil })
	d, err := s.draft(ctx, b)
	if err != nil {
		return nil, s.explain(deed, err)
	}
	defer s.gates.part(b.Account, d.gate)
	var changes []Change
	for more := true; more && err == nil; {
		var written []Change
		written, more, err = s.turn(ctx, d)
		changes = append(changes, written...)
	}
	return changes, s.explain(deed, err)
}

// turn writes the draft's next portion, and reports whether more is left.
func (s *Store) turn(ctx context.Context, d *draft) (changes []Change, more bool, err error) {
	if err := d.gate.enter(ctx); err != nil {
		return nil, false, err
	}
	defer d.gate.leave()
	b, more := d.next(s.mostInTurn(d.batch.Account))
	stale := d.gate.turns.Load() != d.turns || s.gates.inDoubt(b.Account)
	if err := s.settle(ctx, b.Account, b.Term); err != nil {
		return nil, false, err
	}
	if stale {
		if err := s.hold(ctx, d); err != nil {
			return nil, false, err
		}
	}
	screened := s.screen(ctx, &b, d.held.covered)
	rewound := s.rewind(&b)
	p := newPlan(&b, d.held)
	p.rewound = rewound
	write := func(ctx context.Context, do func(ctx context.Context, tx *tx) error) error {
		return s.writeBatch(ctx, d.batch.Source, do)
	}
	if changes, err = s.carryOut(ctx, p, d.packed, write); err != nil {
		return nil, false, err
	}
	s.floors.settle(b.Account, screened)
	d.held.forget(p)
	d.turns++ // this one
	if len(rewound) > 0 {
		s.floors.forget(b.Account) // of what was
		return changes, false, fmt.Errorf("a snapshot of %s ended: %w", rewound[0], ErrRewound)
	}
	return changes, more, nil
}

// carryOut writes what a plan's batch comes to, and returns what changed.
func (s *Store) carryOut(ctx context.Context, p *plan, packed map[identity]columns, write writing) ([]Change, error) {
	if err := s.fill(ctx, p, packed); err != nil || p.idle() {
		return nil, err
	}
	if err := write(ctx, p.apply); err != nil {
		s.gates.doubt(p.batch.Account)
		return nil, err
	}
	s.tidy(ctx, p)
	return p.changes, nil
}

// settle waits, where the outcome of the account's last transaction is not
// known, until that has ended one way or the other: it holds the account's lock.
// What is planned after that is planned on what counts.
func (s *Store) settle(ctx context.Context, account vedette.AccountName, term vedette.Term) error {
	return s.settleWith(ctx, account, func(ctx context.Context, tx *tx) error {
		_, err := lockAccount(ctx, tx, account, term)
		return err
	})
}

func (s *Store) settleWith(ctx context.Context, account vedette.AccountName, lock func(ctx context.Context, tx *tx) error) error {
	if !s.gates.inDoubt(account) {
		return nil
	}
	err := s.write(ctx, lock)
	if err == nil {
		s.gates.trust(account)
	}
	return err
}

// plan is what a batch comes to against what is stored. It is made before the
// transaction begins, so that comparing holds no lock. That is sound because the
// account's gate and its term keep all others from writing the account between
// the two, and settle our own.
type plan struct {
	batch   *Batch
	held    *holdings
	rows    []row // in the order of the primary key
	sets    map[int64]map[string]string
	hashes  map[rowKey]int64 // of the labels of rows whose set is not known
	sown    int              // label sets that are new
	removes []rowKey
	gained  map[feedKey]int64
	feeds   map[feedKey]FeedUpdate
	rewound []vedette.Feed // of which nothing counts as known any more
	end     []any          // of the operation that wrote it; nil for none
	changes []Change
}

func (p *plan) idle() bool {
	return len(p.rows) == 0 && len(p.removes) == 0 && len(p.feeds) == 0
}

func newPlan(b *Batch, h *holdings) *plan {
	return &plan{batch: b, held: h, sets: map[int64]map[string]string{}, hashes: map[rowKey]int64{}, gained: map[feedKey]int64{}, feeds: map[feedKey]FeedUpdate{}}
}

// fill makes a plan. What is compressed already need not be once more.
func (s *Store) fill(ctx context.Context, p *plan, packed map[identity]columns) error {
	upserts, deletes, err := s.keys(ctx, p.batch, p.held.covered)
	if err != nil {
		return err
	}
	if err := s.lookup(ctx, p.held, upserts, deletes); err != nil {
		return err
	}
	if err := s.packChanged(ctx, packed, p.compare(upserts), p.rows); err != nil {
		return err
	}
	sortRows(p.rows)
	for i, key := range deletes {
		if _, ok := p.held.there[key]; ok {
			p.remove(key, p.batch.Deletes[i].Key)
		}
	}
	if err := s.drop(ctx, p, upserts); err != nil {
		return err
	}
	sortKeys(p.removes)
	return s.updates(ctx, p)
}

// keys numbers the kinds of a batch and checks what it names.
func (s *Store) keys(ctx context.Context, b *Batch, covered coverage) (upserts, deletes []rowKey, err error) {
	upserts, deletes = make([]rowKey, len(b.Upserts)), make([]rowKey, len(b.Deletes))
	seen := make(map[rowKey]bool, len(upserts)+len(deletes))
	number := func(key vedette.Key) (rowKey, error) {
		k, err := s.rowKey(ctx, key, covered)
		if err == nil && seen[k] {
			err = vedette.Errorf(vedette.Invalid, "a batch names %s twice", key)
		}
		seen[k] = true
		return k, err
	}
	for i := range b.Upserts {
		if upserts[i], err = number(b.Upserts[i].Key); err == nil {
			err = checkObject(&b.Upserts[i])
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for i := range b.Deletes {
		if deletes[i], err = number(b.Deletes[i].Key); err != nil {
			return nil, nil, err
		}
	}
	return upserts, deletes, nil
}

func (s *Store) rowKey(ctx context.Context, key vedette.Key, covered coverage) (rowKey, error) {
	kind, ok, err := s.kinds.find(ctx, s, key.Kind)
	if err != nil {
		return rowKey{}, err
	}
	k := rowKey{kind, key.Namespace, key.Name}
	if _, declared := covered.of(k); !ok || !declared {
		return k, noFeed(vedette.Feed{Kind: key.Kind, Namespace: key.Namespace})
	}
	return k, nil
}

// The longest that the narrowest database keeps. Kubernetes itself stops at 253
// for nearly all names.
const (
	maxName    = 512
	maxVersion = 255
	maxUID     = 253
)

func checkKey(key vedette.Key) error {
	if !validName(key.Name, maxName) || key.Name == "" || !validName(key.Namespace, 63) {
		return dataErrorf("the name of %.600q cannot be stored: it must have 1 to %d bytes of UTF-8 and no NUL, and its namespace 63 at most", key.String(), maxName)
	}
	return nil
}

func checkObject(o *vedette.Object) error {
	if err := checkKey(o.Key); err != nil {
		return err
	}
	if !validName(o.ResourceVersion, maxVersion) || len(o.UID) > maxUID {
		return dataErrorf("the uid or resourceVersion of %s is longer than %d bytes", o.Key, maxUID)
	}
	return nil
}

// compare keeps what differs from what is stored, as rows that lack their
// compressed columns, and returns the objects in the order of these rows.
func (p *plan) compare(upserts []rowKey) []*vedette.Object {
	var changed []*vedette.Object
	for i, key := range upserts {
		o := &p.batch.Upserts[i]
		r := row{rowKey: key, uid: packUID(o.UID), version: o.ResourceVersion}
		was, exists := p.held.there[key]
		if exists && was.is(o, r.uid) {
			continue
		}
		r.application = applicationOf(o)
		p.label(&r, o, was)
		p.rows = append(p.rows, r)
		changed = append(changed, o)
		change := Change{Account: p.batch.Account, Key: o.Key, Type: Modified, Version: o.ResourceVersion}
		if !exists {
			change.Type = Added
			feed, _ := p.held.covered.of(key)
			p.gained[feed]++
		}
		p.changes = append(p.changes, change)
	}
	return changed
}

const maxApplication = 255

func applicationOf(o *vedette.Object) string {
	return clean(vedette.MonikerOf(o.Key, o.Annotations).App, maxApplication)
}

// label keeps the label set that the stored row has, which most updates do not
// change, and notes any other for the transaction to find.
func (p *plan) label(r *row, o *vedette.Object, was storedRow) {
	if len(o.Labels) == 0 {
		return
	}
	hash := hashLabels(o.Labels)
	if hash == was.hash {
		r.labelset = was.labelset
		return
	}
	p.sets[hash] = o.Labels
	p.hashes[r.rowKey] = hash
}

func (p *plan) remove(key rowKey, name vedette.Key) {
	p.removes = append(p.removes, key)
	feed, _ := p.held.covered.of(key)
	p.gained[feed]--
	p.changes = append(p.changes, Change{Account: p.batch.Account, Key: name, Type: Deleted})
}

// drop finds the rows that a snapshot did not meet in the cluster. What the
// same batch writes or deletes is left to that.
func (s *Store) drop(ctx context.Context, p *plan, upserts []rowKey) error {
	if len(p.batch.Drops) == 0 {
		return nil
	}
	named := make(map[rowKey]bool, len(upserts)+len(p.removes))
	for _, key := range slices.Concat(upserts, p.removes) {
		named[key] = true
	}
	for _, d := range p.batch.Drops {
		feed, err := s.feedKey(ctx, d.Feed, p.held.covered)
		if err != nil {
			return err
		}
		digests := make(map[uint64]bool, len(d.Digests))
		for _, digest := range d.Digests {
			digests[digest] = true
		}
		err = s.scanFeedRows(ctx, p.held.account, feed, 4096, func(rows []indexRow) error {
			for _, r := range rows {
				key := rowKey{feed.kind, r.namespace, r.name}
				if digests[r.digest] && !named[key] {
					named[key] = true
					p.remove(key, vedette.Key{Kind: d.Feed.Kind, Namespace: r.namespace, Name: r.name})
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) feedKey(ctx context.Context, feed vedette.Feed, covered coverage) (feedKey, error) {
	kind, ok, err := s.kinds.find(ctx, s, feed.Kind)
	key := feedKey{kind, feed.Namespace}
	if err == nil && (!ok || !covered[key]) {
		err = noFeed(feed)
	}
	return key, err
}

// updates gathers each feed's row: what the batch says of it and what it gained.
func (s *Store) updates(ctx context.Context, p *plan) error {
	for key, n := range p.gained {
		if n != 0 {
			p.feeds[key] = FeedUpdate{}
		}
	}
	for _, u := range p.batch.Feeds {
		key, err := s.feedKey(ctx, u.Feed, p.held.covered)
		if err != nil {
			return err
		}
		if u.Mark != nil && !validName(string(*u.Mark), maxVersion) {
			return vedette.Errorf(vedette.Invalid, "the mark of feed %s is longer than %d bytes or no text", u.Feed, maxVersion)
		}
		p.feeds[key] = u
	}
	return nil
}

// apply writes a plan. It may run twice, and changes nothing in it that matters
// to the second time.
func (p *plan) apply(ctx context.Context, tx *tx) error {
	if _, err := lockAccount(ctx, tx, p.batch.Account, p.batch.Term); err != nil {
		return err
	}
	if err := p.applyLabels(ctx, tx); err != nil {
		return err
	}
	if err := tx.dialect.upsert(ctx, tx, p.held.account, p.rows); err != nil {
		return err
	}
	if err := tx.dialect.remove(ctx, tx, p.held.account, p.removes); err != nil {
		return err
	}
	keys := slices.SortedFunc(maps.Keys(p.feeds), func(a, b feedKey) int {
		return rowKey{kind: a.kind, namespace: a.namespace}.compare(rowKey{kind: b.kind, namespace: b.namespace})
	})
	for _, key := range keys {
		if err := updateFeed(ctx, tx, p.held.account, key, p.feeds[key], p.gained[key]); err != nil {
			return fmt.Errorf("update a feed: %w", err)
		}
	}
	for _, feed := range p.rewound {
		kind, _ := tx.store.kinds.known(feed.Kind) // the plan has found it
		if err := voidFeed(ctx, tx, p.held.account, feedKey{kind, feed.Namespace}); err != nil {
			return err
		}
	}
	if p.end == nil {
		return nil
	}
	_, err := tx.exec(ctx, tx.store.endText(), p.end...)
	return err
}

func (p *plan) applyLabels(ctx context.Context, tx *tx) error {
	if len(p.sets) == 0 {
		return nil
	}
	ids, made, err := labelsets(ctx, tx, p.held.account, p.sets)
	if err != nil {
		return err
	}
	p.sown = made
	for i := range p.rows {
		if hash, ok := p.hashes[p.rows[i].rowKey]; ok {
			p.rows[i].labelset = ids[hash]
		}
	}
	return nil
}
