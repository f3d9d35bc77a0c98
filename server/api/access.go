package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
)

// authorizer says whose objects a caller may read and change. What accounts, feeds
// and kinds there are is open to all, as the list of credentials is.
type authorizer interface {
	CheckAccount(ctx context.Context, c authorize.Caller, account vedette.AccountName, access authorize.Access) error
	// Readable is nil where everyone may read everything.
	Readable(ctx context.Context, c authorize.Caller) (func(vedette.AccountName) bool, error)
}

// allowAll lets everyone do everything.
type allowAll struct{}

func (allowAll) CheckAccount(context.Context, authorize.Caller, vedette.AccountName, authorize.Access) error {
	return nil
}

func (allowAll) Readable(context.Context, authorize.Caller) (func(vedette.AccountName) bool, error) {
	return nil, nil
}

// restrictFilter restricts a filter to what the sender of a request may read. One answer
// of the authority serves for all accounts of the request.
func (a *api) restrictFilter(r *http.Request, f *filter) (err error) {
	f.canRead, err = a.Authorizer.Readable(r.Context(), authorize.CallerOf(r))
	return err
}

// readableAccounts leaves out the accounts that may not be read. One that was asked for
// by its name is a refusal: an empty answer would say that it holds nothing.
func (f filter) readableAccounts(accounts []vedette.AccountName) ([]vedette.AccountName, error) {
	if f.canRead == nil {
		return accounts, nil
	}
	var kept []vedette.AccountName
	for _, account := range accounts {
		switch {
		case f.canRead(account):
			kept = append(kept, account)
		case slices.Contains(f.accountPatterns, string(account)):
			return nil, vedette.Errorf(vedette.Denied, "you may not read account %s", account)
		}
	}
	return kept, nil
}

// refreshAccess makes the changes of accounts pass as far as they may be read. It is
// called again while the hub asks for each change whether it is wanted.
func (s *changeStream) refreshAccess(ctx context.Context) error {
	canRead, err := s.Authorizer.Readable(ctx, authorize.CallerOf(s.request))
	if err != nil || canRead == nil {
		return err
	}
	if s.canRead.Swap(&canRead) != nil {
		return nil
	}
	s.filter.canRead = func(account vedette.AccountName) bool { return (*s.canRead.Load())(account) }
	return nil
}
