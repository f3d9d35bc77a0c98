package store

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/history"
)

// maxIDLookup bounds how long an operation waits until the other databases say that they do not have its id.
const maxIDLookup = time.Second

// BeginOperation is history.History.BeginOperation.
func (s *Store) BeginOperation(ctx context.Context, o history.Operation) error {
	d, err := s.of(ctx, o.Account)
	if err != nil {
		return err
	}
	if err := s.checkID(ctx, d, o.ID); err != nil {
		return err
	}
	return inDatabase(d.name, d.BeginOperation(ctx, o))
}

// checkID returns an error if another database than the account's has an operation of the same id: callers choose ids, and an agent knows
// operations by them. One that does not answer is not waited for, because operations on other accounts must not depend on it.
func (s *Store) checkID(ctx context.Context, own *database, id vedette.OperationID) error {
	if s.shards == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxIDLookup)
	defer cancel()
	var isTaken atomic.Bool
	_ = s.tellAll(ctx, func(ctx context.Context, d *database) error {
		if d.name == own.name || !d.HasAnswered() {
			return nil
		}
		_, err := d.Operation(ctx, id)
		if err == nil {
			isTaken.Store(true)
		}
		return err
	})
	if isTaken.Load() {
		return vedette.Errorf(vedette.Conflict, "the operation %s was accepted before, for another account", id)
	}
	return nil
}

// EndOperations is history.History.EndOperations.
func (s *Store) EndOperations(ctx context.Context, operations []history.Operation) error {
	if s.shards == nil {
		return s.History.EndOperations(ctx, operations)
	}
	shares, err := split(ctx, s, operations, func(o history.Operation) vedette.AccountName { return o.Account })
	if err != nil {
		return err
	}
	return tell(ctx, shares, func(ctx context.Context, d share[history.Operation]) error { return d.EndOperations(ctx, d.values) })
}

// Histories returns which of some accounts each database has, so that one that does not answer keeps no other waiting. With one database it
// returns nil.
func (s *Store) Histories(ctx context.Context, accounts []vedette.AccountName) (map[*history.History][]vedette.AccountName, error) {
	if s.shards == nil {
		return nil, nil
	}
	shares, err := s.splitAccounts(ctx, accounts)
	if err != nil {
		return nil, err
	}
	byHistory := map[*history.History][]vedette.AccountName{}
	for _, d := range shares {
		byHistory[d.History] = d.values
	}
	return byHistory, nil
}

// Operation is history.History.Operation.
func (s *Store) Operation(ctx context.Context, id vedette.OperationID) (history.Operation, error) {
	if s.shards == nil {
		return s.History.Operation(ctx, id)
	}
	return s.findOperation(ctx, id)
}

// findOperation asks all databases, and returns what the first has that knows the operation. It is not in the history only if all say so.
func (s *Store) findOperation(ctx context.Context, id vedette.OperationID) (history.Operation, error) {
	type answer struct {
		operation history.Operation
		err       error
	}
	all := s.all()
	answers := make(chan answer, len(all))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, d := range all {
		go func() {
			o, err := d.Operation(ctx, id)
			answers <- answer{o, inDatabase(d.name, err)}
		}()
	}
	var failed error
	for range all {
		a := <-answers
		if a.err == nil {
			return a.operation, nil
		}
		if vedette.KindOf(a.err) != vedette.NotFound {
			failed = errors.Join(failed, a.err)
		}
	}
	if failed != nil {
		return history.Operation{}, failed
	}
	return history.Operation{}, history.NoOperation(id)
}

// Operations is history.History.Operations. It asks all databases even if accounts are named: operations stay where their account was.
func (s *Store) Operations(ctx context.Context, q history.Query) ([]history.Operation, string, error) {
	if s.shards == nil {
		return s.History.Operations(ctx, q)
	}
	type page struct {
		operations []history.Operation
		next       string
	}
	pages, err := askAll(ctx, s, func(ctx context.Context, d *database) (page, error) {
		operations, next, err := d.Operations(ctx, q)
		return page{operations, next}, err
	})
	if err != nil {
		return nil, "", err
	}
	lists := make([][]history.Operation, len(pages))
	for i, p := range pages {
		lists[i] = p.operations
	}
	operations, next := history.MergePages(q, lists, slices.ContainsFunc(pages, func(p page) bool { return p.next != "" }))
	return operations, next, nil
}

// UndoneOperation is history.History.UndoneOperation.
func (s *Store) UndoneOperation(ctx context.Context, account vedette.AccountName, key vedette.Key,
	before, after string) (vedette.OperationID, error) {
	d, err := s.toRead(ctx, account)
	if err != nil {
		return "", err
	}
	return d.UndoneOperation(ctx, account, key, before, after)
}

// MoveOperation is history.History.MoveOperation.
func (s *Store) MoveOperation(ctx context.Context, id vedette.OperationID, from, to vedette.ServerID, deadline time.Time) (bool, error) {
	var hasMoved atomic.Bool
	err := s.tellAll(ctx, func(ctx context.Context, d *database) error {
		moved, err := d.MoveOperation(ctx, id, from, to, deadline)
		if moved {
			hasMoved.Store(true)
		}
		return err
	})
	if hasMoved.Load() {
		return true, nil
	}
	return false, err
}

// MarkOperationsLost is history.History.MarkOperationsLost for all databases.
func (s *Store) MarkOperationsLost(ctx context.Context, server vedette.ServerID, message string, at time.Time) (int, error) {
	return s.count(ctx, func(ctx context.Context, d *database) (int, error) {
		return d.MarkOperationsLost(ctx, server, message, at)
	})
}

// ExpireOperations is history.History.ExpireOperations for all databases.
func (s *Store) ExpireOperations(ctx context.Context, deadlineBefore time.Time, message string, at time.Time) (int, error) {
	return s.count(ctx, func(ctx context.Context, d *database) (int, error) {
		return d.ExpireOperations(ctx, deadlineBefore, message, at)
	})
}

// PurgeOrphans is history.History.PurgeOrphans for all databases, each of which deletes at most limit rows.
func (s *Store) PurgeOrphans(ctx context.Context, limit int) (int, error) {
	return s.count(ctx, func(ctx context.Context, d *database) (int, error) { return d.PurgeOrphans(ctx, limit) })
}

// count changes something in all databases, and returns in how many rows.
func (s *Store) count(ctx context.Context, do func(ctx context.Context, d *database) (int, error)) (int, error) {
	var total atomic.Int64
	err := s.tellAll(ctx, func(ctx context.Context, d *database) error {
		n, err := do(ctx, d)
		total.Add(int64(n))
		return err
	})
	return int(total.Load()), err
}

// HistorySize is history.History.HistorySize.
func (s *Store) HistorySize(ctx context.Context) (history.Size, error) {
	sizes, err := askAll(ctx, s, func(ctx context.Context, d *database) (history.Size, error) { return d.HistorySize(ctx) })
	var total history.Size
	for _, size := range sizes {
		total.Entries += size.Entries
		total.Bytes += size.Bytes
		if total.Oldest.IsZero() || !size.Oldest.IsZero() && size.Oldest.Before(total.Oldest) {
			total.Oldest = size.Oldest
		}
	}
	return total, err
}

// HistoryBytesOf is history.History.HistoryBytesOf.
func (s *Store) HistoryBytesOf(ctx context.Context, verb vedette.Verb) (int64, error) {
	sizes, err := askAll(ctx, s, func(ctx context.Context, d *database) (int64, error) { return d.HistoryBytesOf(ctx, verb) })
	return sum(sizes), err
}

// PurgeOperations is history.History.PurgeOperations. Each database deletes the oldest that it has.
func (s *Store) PurgeOperations(ctx context.Context, before time.Time, limit int) (n int, bytes int64, err error) {
	return s.purge(limit, func(d *database, limit int) (int, int64, error) { return d.PurgeOperations(ctx, before, limit) })
}

// PurgeOperationsOf is history.History.PurgeOperationsOf. Each database deletes the oldest that it has.
func (s *Store) PurgeOperationsOf(ctx context.Context, verb vedette.Verb, before time.Time, limit int) (n int, bytes int64, err error) {
	return s.purge(limit, func(d *database, limit int) (int, int64, error) { return d.PurgeOperationsOf(ctx, verb, before, limit) })
}

// purge deletes rows of all databases in equal portions, until there are limit of them or no more.
func (s *Store) purge(limit int, purge func(d *database, limit int) (int, int64, error)) (n int, bytes int64, err error) {
	full := s.all()
	var errs []error
	for n < limit && len(full) > 0 {
		portion := max(1, (limit-n)/len(full))
		var next []*database
		for _, d := range full {
			if n >= limit {
				break
			}
			deleted, size, err := purge(d, min(portion, limit-n))
			n, bytes = n+deleted, bytes+size
			switch {
			case err != nil: // the others are purged nevertheless
				errs = append(errs, inDatabase(d.name, err))
			case deleted == portion:
				next = append(next, d)
			}
		}
		full = next
	}
	return n, bytes, errors.Join(errs...)
}
