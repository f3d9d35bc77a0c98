package write

import (
	"context"
	"database/sql"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/batch"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// storedDeclaration is what an account has declared, as it is stored.
type storedDeclaration struct {
	id    int64
	term  vedette.Term
	feeds map[catalog.Feed]storedResource
	marks map[catalog.Feed]vedette.Mark
}

// isDeclared reports whether an account has declared the same feeds before, as an agent does that connects again: then there is nothing to
// write. The account is locked. It is read together with others, because thousands of agents may connect again at once.
func (w *Writer) isDeclared(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []commit.DeclaredFeed) (
	bool, error) {
	if w.locks.IsUncertain(account) { // an earlier transaction may still commit
		return false, nil
	}
	stored, err := w.declared.Do(ctx, account)
	if err != nil || stored.term != term || len(stored.feeds) != len(feeds) {
		return false, err
	}
	covered := coverage{}
	for _, f := range feeds {
		kind, known := w.kinds.CachedID(f.Feed.Kind)
		r, err := newStoredResource(f.Resource)
		if err != nil || !known {
			return false, err
		}
		key := catalog.Feed{KindID: kind, Namespace: f.Feed.Namespace}
		if s, exists := stored.feeds[key]; !exists || s != r || covered[key] { // a feed that is declared twice is not stored twice
			return false, nil
		}
		covered[key] = true
	}
	if !w.held.knows(account, term) {
		w.holdFor(account, term, stored.id, covered, stored.marks)
	}
	return true, nil
}

func (w *Writer) readDeclaration(ctx context.Context, account vedette.AccountName) (storedDeclaration, error) {
	all, err := w.readDeclarations(ctx, []vedette.AccountName{account})
	if err != nil {
		return storedDeclaration{}, err
	}
	return all[0].Value, nil
}

func (w *Writer) readDeclarations(ctx context.Context, accounts []vedette.AccountName) ([]batch.Outcome[storedDeclaration], error) {
	found := map[vedette.AccountName]storedDeclaration{}
	condition := w.db.Dialect.InTexts("a.name", textsOf(accounts))
	err := w.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var account vedette.AccountName
		var id int64
		var term vedette.Term
		var mark vedette.Mark
		var k catalog.Feed
		var r storedResource
		err := rows.Scan(&account, &id, &term, &k.KindID, &k.Namespace, &mark, &r.version, &r.plural, &r.singular, &r.shortNames, &r.namespaced)
		if _, known := found[account]; !known {
			found[account] = storedDeclaration{id, term, map[catalog.Feed]storedResource{}, map[catalog.Feed]vedette.Mark{}}
		}
		found[account].feeds[k], found[account].marks[k] = r, mark
		return err
	}, sqldb.Named("read what accounts have declared", `SELECT a.name, a.id, a.term, f.kind_id, f.namespace, f.mark, f.version, f.plural, f.singular, f.short_names, f.namespaced
		FROM accounts a JOIN feeds f ON f.account_id = a.id WHERE `+condition.SQL), condition.Args...)
	if err != nil {
		return nil, err
	}
	outcomes := make([]batch.Outcome[storedDeclaration], len(accounts))
	for i, account := range accounts {
		outcomes[i].Value = found[account] // nothing if it has no feeds
	}
	return outcomes, nil
}

// textsOf returns the names of accounts that a transaction has found before, and which are valid.
func textsOf(accounts []vedette.AccountName) []string {
	texts := make([]string, len(accounts))
	for i, account := range accounts {
		texts[i] = string(account)
	}
	return texts
}
