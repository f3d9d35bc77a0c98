package store

import (
	"context"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/history"
)

// Commit is write.Writer.Commit.
func (s *Store) Commit(ctx context.Context, b commit.Batch) ([]commit.Change, error) {
	d, err := s.of(ctx, b.Account)
	if err != nil {
		return nil, err
	}
	return d.Commit(ctx, b)
}

// Declare is write.Writer.Declare.
func (s *Store) Declare(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []commit.DeclaredFeed,
	unknownGroups []string) ([]commit.Change, error) {
	d, err := s.of(ctx, account)
	if err != nil {
		return nil, err
	}
	return d.Declare(ctx, account, term, feeds, unknownGroups)
}

// BeginSnapshot is write.Writer.BeginSnapshot.
func (s *Store) BeginSnapshot(ctx context.Context, account vedette.AccountName, term vedette.Term, feed vedette.Feed) error {
	d, err := s.of(ctx, account)
	if err != nil {
		return err
	}
	return d.BeginSnapshot(ctx, account, term, feed)
}

// Index is write.Writer.Index.
func (s *Store) Index(ctx context.Context, account vedette.AccountName, feed vedette.Feed, yield func(digests []uint64) error) error {
	d, err := s.of(ctx, account)
	if err != nil {
		return err
	}
	return d.Index(ctx, account, feed, yield)
}

// IndexWithoutNames is write.Writer.IndexWithoutNames.
func (s *Store) IndexWithoutNames(ctx context.Context, account vedette.AccountName, feed vedette.Feed,
	yield func(digests []uint64) error) error {
	d, err := s.of(ctx, account)
	if err != nil {
		return err
	}
	return d.IndexWithoutNames(ctx, account, feed, yield)
}

// ScanObjects is write.Writer.ScanObjects.
func (s *Store) ScanObjects(ctx context.Context, account vedette.AccountName, feed vedette.Feed,
	yield func([]commit.StoredObject) error) error {
	d, err := s.of(ctx, account)
	if err != nil {
		return err
	}
	return d.ScanObjects(ctx, account, feed, yield)
}

// InvalidateFeed is write.Writer.InvalidateFeed.
func (s *Store) InvalidateFeed(ctx context.Context, account vedette.AccountName, term vedette.Term, feed vedette.Feed) error {
	d, err := s.of(ctx, account)
	if err != nil {
		return err
	}
	return d.InvalidateFeed(ctx, account, term, feed)
}

// WriteThrough is write.Writer.WriteThrough.
func (s *Store) WriteThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, o vedette.Object,
	end *history.Operation) (changes []commit.Change, ended bool, err error) {
	d, err := s.of(ctx, account)
	if err != nil {
		return nil, false, err
	}
	return d.WriteThrough(ctx, account, term, o, end)
}

// RemoveAbsent is write.Writer.RemoveAbsent.
func (s *Store) RemoveAbsent(ctx context.Context, account vedette.AccountName, term vedette.Term, absent vedette.Absence, uid string,
	end *history.Operation) (changes []commit.Change, ended bool, err error) {
	d, err := s.of(ctx, account)
	if err != nil {
		return nil, false, err
	}
	return d.RemoveAbsent(ctx, account, term, absent, uid, end)
}

// HasReached is write.Writer.HasReached.
func (s *Store) HasReached(ctx context.Context, account vedette.AccountName, o vedette.ObjectVersion) (bool, error) {
	d, err := s.of(ctx, account)
	if err != nil {
		return false, err
	}
	return d.HasReached(ctx, account, o)
}

// HasRemoved is write.Writer.HasRemoved.
func (s *Store) HasRemoved(ctx context.Context, account vedette.AccountName, absent vedette.Absence, uid string, wasStored bool) (
	bool, error) {
	d, err := s.of(ctx, account)
	if err != nil {
		return false, err
	}
	return d.HasRemoved(ctx, account, absent, uid, wasStored)
}

// StoreMarks is write.Writer.StoreMarks.
func (s *Store) StoreMarks(ctx context.Context, account vedette.AccountName) error {
	d, err := s.of(ctx, account)
	if err != nil {
		return err
	}
	return d.StoreMarks(ctx, account)
}

// OnSettled is write.Writer.OnSettled for all databases.
func (s *Store) OnSettled(publish func([]commit.Change)) {
	for _, d := range s.all() {
		d.OnSettled(publish)
	}
}

// RunSettling is write.Writer.RunSettling for all databases.
func (s *Store) RunSettling(ctx context.Context) error {
	return s.tellAll(ctx, func(ctx context.Context, d *database) error { return d.RunSettling(ctx) })
}

// RemoveThrough is write.Writer.RemoveThrough.
func (s *Store) RemoveThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, key vedette.Key, uid string,
	end *history.Operation) (changes []commit.Change, ended bool, err error) {
	d, err := s.of(ctx, account)
	if err != nil {
		return nil, false, err
	}
	return d.RemoveThrough(ctx, account, term, key, uid, end)
}

// Prioritize is write.Writer.Prioritize, in all databases: it does no I/O, and so does not ask where the account is.
func (s *Store) Prioritize(account vedette.AccountName) (end func()) {
	if s.shards == nil {
		return s.Writer.Prioritize(account)
	}
	var ends []func()
	for _, d := range s.all() {
		ends = append(ends, d.Prioritize(account))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// UID is write.Writer.UID.
func (s *Store) UID(ctx context.Context, account vedette.AccountName, key vedette.Key) (uid, version string, err error) {
	d, err := s.toRead(ctx, account)
	if err != nil {
		return "", "", err
	}
	return d.UID(ctx, account, key)
}
