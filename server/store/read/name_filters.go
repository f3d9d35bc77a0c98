package read

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

const (
	// nameFilterInterval is how often filters are built: until then searches read accounts that have
	// just appeared, or have many new names.
	nameFilterInterval = 5 * time.Second
	// nameFilterUse is for how long after a search filters are built. To build them, the names of all objects are read, and with several
	// servers that is again each time one of them ends: too much for what nobody asks for.
	nameFilterUse = time.Hour
)

// RunNameFilters keeps filters of the names of all accounts until ctx ends, which make searches for
// rare texts fast, while there are searches. They take some kilobytes per account.
func (r *Reader) RunNameFilters(ctx context.Context) error {
	ticker := time.NewTicker(nameFilterInterval)
	defer ticker.Stop()
	for {
		if r.isSearched() {
			if err := r.BuildNameFilters(ctx); err != nil && ctx.Err() == nil {
				r.db.Log.Debug("cannot read the names of objects; searches read all objects until they are read", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// isSearched reports whether filters were asked for a short time ago.
func (r *Reader) isSearched() bool {
	last := r.searched.Load()
	return last != nil && time.Since(*last) < nameFilterUse
}

// BuildNameFilters builds the filters that are missing, and those that have become too old. It reads
// the keys of one account after the other.
func (r *Reader) BuildNameFilters(ctx context.Context) error {
	if !r.db.KnowsWrites() || !r.versions.IsCurrent() {
		return nil
	}
	names, err := r.names.Read(ctx)
	if err != nil {
		return r.db.WrapError("read the accounts", err)
	}
	r.forgetNameFilters(names)
	for id, name := range names.Visible {
		if !r.nameFilters.NeedsBuilding(id) {
			continue
		}
		if err := r.buildNameFilter(ctx, id, name); err != nil {
			return r.db.WrapError("read the names of the objects of account "+string(name), err)
		}
	}
	return nil
}

// forgetNameFilters keeps the filters of retired accounts, which may return with their objects.
func (r *Reader) forgetNameFilters(names *catalog.AccountNames) {
	hidden := map[int64]bool{}
	for _, id := range names.Hidden {
		hidden[id] = true
	}
	r.nameFilters.ForgetExcept(func(id int64) bool {
		_, visible := names.Visible[id]
		return visible || hidden[id]
	})
}

// buildNameFilter reads the names of an account. Names that are committed meanwhile are added by
// their writers. A writer that began before it knew of the filter ends first, because it holds the
// account's lock; if it is not known whether its transaction has ended, the account is left for the
// next time.
func (r *Reader) buildNameFilter(ctx context.Context, accountID int64, account vedette.AccountName) (err error) {
	f, complete := r.nameFilters.Begin(accountID), false
	defer func() { r.nameFilters.End(accountID, complete) }()
	unlock, err := r.locks.Lock(ctx, account)
	if err != nil {
		return err
	}
	uncertain := r.locks.IsUncertain(account)
	unlock()
	if uncertain {
		return nil
	}
	err = r.db.QueryEachAnywhere(ctx, func(rows *sql.Rows) error {
		var kind int64
		var namespace, name string
		err := rows.Scan(&kind, &namespace, &name)
		f.Add(kind, namespace, name)
		return err
	}, sqldb.Named("read the names of objects", fmt.Sprintf(`SELECT o.kind_id, o.namespace, o.name FROM objects o%s WHERE o.account_id = %d`, r.db.Dialect.KeyHint, accountID)))
	if err == nil {
		f.Compact()
		complete = true
	}
	return err
}
