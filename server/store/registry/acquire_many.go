package registry

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/batch"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// When a server ends, thousands of accounts move at once. Those that move within an interval are read and written together.
const (
	maxTogether      = 100 // accounts in one transaction
	togetherInterval = 100 * time.Millisecond
	// fewTogether come one after the other without delay: a few agents that connect gain nothing by waiting.
	fewTogether = 8
	// maxRunning is more than one, because a connection that hangs must not stop all accounts.
	maxRunning = 4
)

// Together returns how accounts that move at once are handled: by many, or, if that does not handle one, by alone.
func Together[T, R any](many func(context.Context, []T) ([]batch.Outcome[R], error),
	alone func(context.Context, T) (R, error)) batch.Config[T, R] {
	return batch.Config[T, R]{Max: maxTogether, Interval: togetherInterval, MaxRunning: maxRunning, Few: fewTogether,
		Together: many, Alone: alone}
}

// acquisition is a call of Acquire.
type acquisition struct {
	account vedette.AccountName
	CacherClaim
}

// readMany reads accounts. What is missing is read alone, which has its own error.
func (r *Registry) readMany(ctx context.Context, names []vedette.AccountName) ([]batch.Outcome[Account], error) {
	condition := r.db.Dialect.InTexts("a.name", validNames(names))
	found := map[vedette.AccountName]Account{}
	err := r.db.QueryEach(ctx, func(rows *sql.Rows) error {
		a, err := scanAccount(rows)
		found[a.Name] = a
		return err
	}, sqldb.Named("read registered accounts", selectAccounts+` AND `+condition.SQL), condition.Args...)
	if err != nil {
		return nil, fmt.Errorf("read %d accounts: %w", len(names), err)
	}
	outcomes := make([]batch.Outcome[Account], len(names))
	for i, name := range names {
		a, exists := found[name]
		outcomes[i] = batch.Outcome[Account]{Value: a, IsLeft: !exists}
	}
	return outcomes, nil
}

// validNames returns the names that can be stored, as texts.
func validNames[T ~string](names []T) (texts []string) {
	for _, name := range names {
		if sqldb.IsValidText(string(name), sqldb.MaxAccountName) {
			texts = append(texts, string(name))
		}
	}
	return texts
}

// acquireMany acquires accounts in one transaction. It leaves out those that are locked, and those of which more changes than the cacher.
// So it waits for nobody, and all that it does is certain to succeed for all, or for none.
func (r *Registry) acquireMany(ctx context.Context, calls []acquisition) (outcomes []batch.Outcome[vedette.Term], err error) {
	err = r.db.WriteLowPriority(ctx, func(ctx context.Context, tx *sqldb.Tx) (err error) {
		outcomes, err = acquireMany(ctx, tx, calls)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("acquire %d accounts: %w", len(calls), err)
	}
	for i, o := range outcomes {
		if o.Err == nil && !o.IsLeft {
			r.versions.Settle(calls[i].account)
		}
	}
	return outcomes, nil
}

func acquireMany(ctx context.Context, tx *sqldb.Tx, calls []acquisition) ([]batch.Outcome[vedette.Term], error) {
	rows, err := lockManyAcquired(ctx, tx, calls)
	if err != nil {
		return nil, err
	}
	outcomes := make([]batch.Outcome[vedette.Term], len(calls))
	var winners []winner
	for i, c := range calls {
		row, isLocked := rows[string(c.account)]
		delete(rows, string(c.account)) // it can be acquired once
		switch {
		case !isLocked || !row.changesOnlyCacher(c.CacherClaim) || c.Server != calls[0].Server:
			outcomes[i].IsLeft = true
		case c.After != nil && row.term != int64(*c.After):
			outcomes[i].Err = ErrOvertaken
		default:
			outcomes[i].Value = vedette.Term(row.term + 1)
			winners = append(winners, winner{row, string(c.Agent)})
		}
	}
	if len(winners) == 0 {
		return outcomes, nil
	}
	if err := resumeFreshness(ctx, tx, winners); err != nil {
		return nil, err
	}
	return outcomes, assignMany(ctx, tx, winners, calls[0].Server)
}

// lockManyAcquired locks those of the accounts that nobody else has locked, and returns their rows by their names.
func lockManyAcquired(ctx context.Context, tx *sqldb.Tx, calls []acquisition) (map[string]acquiredRow, error) {
	names := make([]vedette.AccountName, len(calls))
	for i, c := range calls {
		names[i] = c.account
	}
	condition := tx.Dialect.InTexts("a.name", validNames(names))
	rows := map[string]acquiredRow{}
	err := tx.QueryEach(ctx, func(r *sql.Rows) error {
		var row acquiredRow
		err := row.scan(r)
		rows[row.name] = row
		return err
	}, sqldb.Named("lock the acquired accounts", selectAcquired+condition.SQL+` ORDER BY a.name`+tx.Dialect.SkipLocked), condition.Args...)
	return rows, err
}

// changesOnlyCacher reports whether nothing else of an account changes with its cacher.
func (row *acquiredRow) changesOnlyCacher(h CacherClaim) bool {
	d, err := row.details(h)
	return err == nil && d.isStored && row.shape == h.Shape
}

// winner is an account whose next term begins, because an agent acquires it. Of one that is released, agent is empty.
type winner struct {
	acquiredRow
	agent string
}

// resumeFreshness makes the freshness of accounts that of their next terms.
func resumeFreshness(ctx context.Context, tx *sqldb.Tx, winners []winner) error {
	var seen []sqldb.Seen
	for _, w := range winners {
		if w.freshness > 0 {
			seen = append(seen, sqldb.Seen{ID: w.name, Term: w.term + 1, At: w.freshness})
		}
	}
	if len(seen) == 0 {
		return nil
	}
	slices.SortFunc(seen, func(a, b sqldb.Seen) int { return cmp.Compare(a.ID, b.ID) }) // as all lock them
	return sqldb.RecordSeen(ctx, tx, seen)
}

// assignMany writes the cachers of accounts. Their number is rounded up, so that the database knows few statements. The term is assigned
// after what is derived from it, because MySQL uses it as it is by then.
func assignMany(ctx context.Context, tx *sqldb.Tx, winners []winner, server vedette.ServerID) error {
	ids := make([]int64, len(winners))
	var cases strings.Builder
	var args []any
	for i, w := range winners {
		ids[i] = w.id
		cases.WriteString(` WHEN ? THEN ?`)
		args = append(args, w.id, w.agent)
	}
	for n := len(winners); n&(n-1) != 0; n++ {
		cases.WriteString(` WHEN ? THEN ?`)
		args = append(args, winners[0].id, winners[0].agent)
	}
	in := tx.Dialect.In("id", ids)
	n, err := tx.Exec(ctx, sqldb.Named("assign cachers", `UPDATE accounts SET holder = CASE id`+cases.String()+` ELSE holder END, resumed_term = term + 1, term = term + 1, server = ?, last_seen = ?, orphaned = 0 WHERE `+in.SQL),
		slices.Concat(args, []any{string(server), sqldb.ToMicros(tx.Now)}, in.Args)...)
	if err == nil && n != int64(len(winners)) {
		err = fmt.Errorf("assign cachers of %d accounts: %d rows were written", len(winners), n)
	}
	return err
}
