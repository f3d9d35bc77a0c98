package write

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/batch"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// heldMarks are marks of bookmarks that are not stored: each API server sends one for each kind and minute, although nothing changes.
// They are stored when somebody else may need them, see StoreMarks. docs/decisions/0198 says why that is enough.
//
// A mark that is held is stored only in place of the one that was stored when it came. So it never replaces what is newer, or what was
// cleared. The zero value is ready to use.
type heldMarks struct {
	mu       sync.Mutex
	accounts map[vedette.AccountName]*accountMarks
}

// accountMarks are the marks of an account's declared feeds, in one term.
type accountMarks struct {
	term  vedette.Term
	id    int64
	feeds map[vedette.Feed]*feedMarks
}

type feedMarks struct {
	key    catalog.Feed
	stored vedette.Mark
	held   vedette.Mark // empty for none
}

// splitBookmarks separates the marks that need not be stored at once from what a batch changes.
func splitBookmarks(b commit.Batch) (rest, bookmarks commit.Batch) {
	bookmarks = commit.Batch{Account: b.Account, Term: b.Term}
	rest = b
	rest.Feeds = nil
	for _, u := range b.Feeds {
		if u.IsRemembered && u.Mark != nil {
			bookmarks.Feeds = append(bookmarks.Feeds, commit.FeedUpdate{Feed: u.Feed, Mark: u.Mark})
			u.Mark, u.IsRemembered = nil, false
			if u == (commit.FeedUpdate{Feed: u.Feed}) {
				continue
			}
		}
		rest.Feeds = append(rest.Feeds, u)
	}
	return rest, bookmarks
}

// commitBookmarks keeps marks in memory. Those of feeds that are not declared, or have no mark yet, are written as any other. So are those
// of an account of which operations have written something that its feeds have not reported: marks end what is known of that.
func (w *Writer) commitBookmarks(ctx context.Context, b commit.Batch) error {
	if !w.held.knows(b.Account, b.Term) {
		if err := w.beginHolding(ctx, b.Account, b.Term); err != nil {
			return err
		}
	}
	if !w.writeThrough.Knows(b.Account) && w.held.hold(&b) {
		return nil
	}
	_, err := w.commit(ctx, b)
	w.held.noteCommit(&b, err)
	return err
}

// beginHolding reads which feeds an account has, so that no other marks take memory.
func (w *Writer) beginHolding(ctx context.Context, account vedette.AccountName, term vedette.Term) error {
	if err := w.awaitOutcome(ctx, account, term); err != nil {
		return err
	}
	base, err := w.readBaseline(ctx, account, term)
	if err != nil {
		return err
	}
	w.holdFor(account, term, base.accountID, base.covered, base.marks)
	return nil
}

// holdFor lets the marks of an account be held.
func (w *Writer) holdFor(account vedette.AccountName, term vedette.Term, id int64, feeds coverage, marks map[catalog.Feed]vedette.Mark) {
	a := &accountMarks{term: term, id: id, feeds: make(map[vedette.Feed]*feedMarks, len(feeds))}
	for key := range feeds {
		if kind, known := w.kinds.CachedKind(key.KindID); known {
			a.feeds[vedette.Feed{Kind: kind, Namespace: key.Namespace}] = &feedMarks{key: key, stored: marks[key]}
		}
	}
	w.held.begin(account, a)
}

func (h *heldMarks) knows(account vedette.AccountName, term vedette.Term) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.accounts[account]
	return a != nil && a.term == term
}

func (h *heldMarks) begin(account vedette.AccountName, a *accountMarks) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.accounts == nil {
		h.accounts = map[vedette.AccountName]*accountMarks{}
	}
	h.accounts[account] = a
}

// forget forgets an account, because its feeds have changed, or its term has ended.
func (h *heldMarks) forget(account vedette.AccountName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.accounts, account)
}

func (h *heldMarks) hold(b *commit.Batch) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.accounts[b.Account]
	if a == nil || a.term != b.Term {
		return false
	}
	for _, u := range b.Feeds {
		if f := a.feeds[u.Feed]; f == nil || f.stored == "" || !sqldb.IsValidText(string(*u.Mark), sqldb.MaxVersion) {
			return false
		}
	}
	for _, u := range b.Feeds {
		a.feeds[u.Feed].hold(*u.Mark)
	}
	return true
}

func (f *feedMarks) hold(mark vedette.Mark) {
	f.held = mark
	if mark == f.stored {
		f.held = ""
	}
}

// noteCommit notes the marks that a batch has stored, or may have.
func (h *heldMarks) noteCommit(b *commit.Batch, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.accounts[b.Account]
	switch {
	case a == nil:
		return
	case err != nil || a.term != b.Term:
		delete(h.accounts, b.Account)
		return
	}
	for _, u := range b.Feeds {
		if f := a.feeds[u.Feed]; f != nil && u.Mark != nil {
			f.stored, f.held = *u.Mark, ""
		}
	}
}

// clear notes that a feed's mark is cleared, and returns the one that was held; empty if none was.
func (h *heldMarks) clear(account vedette.AccountName, feed vedette.Feed) (held vedette.Mark) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.accounts[account]
	if a == nil || a.feeds[feed] == nil {
		return ""
	}
	f := a.feeds[feed]
	held = f.held
	f.stored, f.held = "", ""
	return held
}

// heldAccount is what is held of an account, to be stored.
type heldAccount struct {
	account vedette.AccountName
	term    vedette.Term
	id      int64
	feeds   []feedMarks
}

// of returns what is held of an account.
func (h *heldMarks) of(account vedette.AccountName) (held heldAccount) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.accounts[account]
	if a == nil {
		return heldAccount{}
	}
	held = heldAccount{account: account, term: a.term, id: a.id}
	for _, f := range a.feeds {
		if f.held != "" {
			held.feeds = append(held.feeds, *f)
		}
	}
	return held
}

// stored notes that what was held is stored.
func (h *heldMarks) stored(s heldAccount) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.accounts[s.account]
	if a == nil || a.term != s.term {
		return
	}
	byKey := make(map[catalog.Feed]feedMarks, len(s.feeds))
	for _, f := range s.feeds {
		byKey[f.key] = f
	}
	for _, f := range a.feeds {
		if was, isStored := byKey[f.key]; isStored && f.stored == was.stored {
			f.stored = was.held
			f.hold(f.held)
		}
	}
}

// StoreMarks stores the marks of an account that are kept in memory. Call it before the account gets another cacher, or none: who continues
// from the marks may be another process, which has not seen what this one has. It does nothing if there are none. Afterwards, or if that
// fails, a cacher may have to read a feed anew that has not changed, if the API server does not know its stored mark any more.
func (w *Writer) StoreMarks(ctx context.Context, account vedette.AccountName) error {
	held := w.held.of(account)
	if len(held.feeds) == 0 {
		return nil
	}
	_, err := w.holding.Do(ctx, held)
	switch {
	case err == nil:
		w.held.stored(held)
	case errors.Is(err, registry.ErrTerm) || errors.Is(err, registry.ErrNoAccount):
		w.held.forget(account) // its next cacher has other marks
		return nil
	}
	return w.db.WrapError("store the marks of account "+string(account), err)
}

// storeMarks stores what is held of one account.
func (w *Writer) storeMarks(ctx context.Context, held heldAccount) (struct{}, error) {
	err := w.db.WriteLowPriority(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		if _, err := registry.LockAccountRow(ctx, tx, held.account, held.term); err != nil {
			return err
		}
		return w.dialect.storeMarks(ctx, tx, []heldAccount{held})
	})
	return struct{}{}, err
}

// storeManyMarks stores what is held of accounts in one transaction. It leaves out accounts that are locked, or have another term.
func (w *Writer) storeManyMarks(ctx context.Context, all []heldAccount) (outcomes []batch.Outcome[struct{}], err error) {
	names := make([]vedette.AccountName, len(all))
	for i, h := range all {
		names[i] = h.account
	}
	err = w.db.WriteLowPriority(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		locked, err := lockFreeAccounts(ctx, tx, tx.Dialect.InTexts("name", textsOf(names)))
		if err != nil {
			return err
		}
		outcomes = make([]batch.Outcome[struct{}], len(all))
		var ours []heldAccount
		for i, h := range all {
			if row, isLocked := locked[h.account]; isLocked && row.term == h.term {
				ours = append(ours, h)
			} else {
				outcomes[i].IsLeft = true
			}
		}
		return w.dialect.storeMarks(ctx, tx, ours)
	})
	if err != nil {
		return nil, fmt.Errorf("store the marks of %d accounts: %w", len(all), err)
	}
	return outcomes, nil
}

// storeMarksSingly writes marks one by one.
func storeMarksSingly(ctx context.Context, tx *sqldb.Tx, all []heldAccount) error {
	for _, h := range all {
		for _, f := range h.feeds {
			if _, err := tx.Exec(ctx, sqldb.Named("store a mark", `UPDATE feeds SET mark = ? WHERE account_id = ? AND kind_id = ? AND namespace = ? AND mark = ?`),
				string(f.held), h.id, f.key.KindID, f.key.Namespace, string(f.stored)); err != nil {
				return err
			}
		}
	}
	return nil
}

// postgresStoreMarks writes all marks by one statement.
func postgresStoreMarks(ctx context.Context, tx *sqldb.Tx, all []heldAccount) error {
	var accounts, kinds []int64
	var namespaces, before, marks []string
	for _, h := range all {
		for _, f := range h.feeds {
			accounts, kinds = append(accounts, h.id), append(kinds, f.key.KindID)
			namespaces = append(namespaces, f.key.Namespace)
			before, marks = append(before, string(f.stored)), append(marks, string(f.held))
		}
	}
	if len(marks) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE feeds f SET mark = k.mark
		FROM unnest($1::integer[], $2::integer[], $3::text[], $4::text[], $5::text[]) AS k (account_id, kind_id, namespace, stored, mark)
		WHERE f.account_id = k.account_id AND f.kind_id = k.kind_id AND f.namespace = k.namespace AND f.mark = k.stored`,
		accounts, kinds, namespaces, before, marks)
	if err != nil {
		return fmt.Errorf("store marks: %w", err)
	}
	return nil
}
