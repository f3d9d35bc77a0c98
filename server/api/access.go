package api

import (
	"context"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/authorize"
)

// authorizer decides which accounts a caller may read and change. The lists of accounts, feeds
// and kinds are open to everyone, like the list of credentials.
type authorizer interface {
	CheckAccount(ctx context.Context, c authorize.Caller, account vedette.AccountName, access authorize.Access) error
	// Readable returns nil if the caller may read all accounts.
	Readable(ctx context.Context, c authorize.Caller) (func(vedette.AccountName) bool, error)
}

// restrictFilter restricts a filter to the accounts that the caller may read. It asks the
// authorizer once for all accounts.
func (a *api) restrictFilter(r *http.Request, f *filter) (err error) {
	f.canRead, err = a.Authorizer.Readable(r.Context(), authorize.CallerOf(r))
	return err
}

// readableAccounts returns the accounts that may be read. It fails if an account without
// permission was requested by name, because an empty result would look like an empty account.
func (f filter) readableAccounts(accounts []*accountfeeds.Account) ([]*accountfeeds.Account, error) {
	if f.canRead == nil {
		return accounts, nil
	}
	var kept []*accountfeeds.Account
	for _, account := range accounts {
		switch {
		case f.canRead(account.Name):
			kept = append(kept, account)
		case f.patterns.Names[account.Name]:
			return nil, vedette.Errorf(vedette.Denied, "you do not have permission to read account %s", account.Name)
		}
	}
	return kept, nil
}

// addAccess adds to each account what the caller may do with it. It fails if that cannot be looked up now, because
// no access would look like a refusal.
func (a *api) addAccess(r *http.Request, accounts []accountView) error {
	caller := authorize.CallerOf(r)
	for i := range accounts {
		for _, access := range []authorize.Access{authorize.Read, authorize.Write} {
			err := a.Authorizer.CheckAccount(r.Context(), caller, accounts[i].Name, access)
			switch {
			case err == nil:
				accounts[i].Access = append(accounts[i].Access, access)
			case vedette.KindOf(err) != vedette.Denied:
				return err
			}
		}
	}
	return nil
}

// initAccess sets which accounts the stream may read.
func (s *changeStream) initAccess(ctx context.Context) error {
	canRead, err := s.Authorizer.Readable(ctx, authorize.CallerOf(s.request))
	if err != nil || canRead == nil {
		return err
	}
	s.canRead.Store(&canRead)
	s.filter.canRead = func(account vedette.AccountName) bool { return (*s.canRead.Load())(account) }
	return nil
}

// refreshAccess updates which accounts the stream may read. The subscription reads the
// result concurrently, so a stream that could read all accounts cannot be restricted and ends.
func (s *changeStream) refreshAccess(ctx context.Context) error {
	canRead, err := s.Authorizer.Readable(ctx, authorize.CallerOf(s.request))
	switch {
	case err != nil:
		return err
	case s.canRead.Load() == nil && canRead != nil:
		return vedette.Errorf(vedette.Unavailable, "your permissions have changed: open the stream again")
	case s.canRead.Load() == nil:
		return nil
	case canRead == nil:
		canRead = func(vedette.AccountName) bool { return true }
	}
	s.canRead.Store(&canRead)
	return nil
}
