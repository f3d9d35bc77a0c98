package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
)

// authority says whose objects a caller may read and change. What accounts, feeds
// and kinds there are is open to all, as the list of credentials is.
type authority interface {
	CheckAccount(ctx context.Context, c authorize.Caller, account vedette.AccountName, access authorize.Access) error
	// Readable is nil where everyone may read everything.
	Readable(ctx context.Context, c authorize.Caller) (func(vedette.AccountName) bool, error)
}

// open lets everyone do everything.
type open struct{}

func (open) CheckAccount(context.Context, authorize.Caller, vedette.AccountName, authorize.Access) error {
	return nil
}

func (open) Readable(context.Context, authorize.Caller) (func(vedette.AccountName) bool, error) {
	return nil, nil
}

// allow restricts a filter to what the sender of a request may read. One answer
// of the authority serves for all accounts of the request.
func (a *api) allow(r *http.Request, f *filter) (err error) {
	f.may, err = a.Authority.Readable(r.Context(), authorize.CallerOf(r))
	return err
}

// readable leaves out the accounts that may not be read. One that was asked for
// by its name is a refusal: an empty answer would say that it holds nothing.
func (f filter) readable(accounts []vedette.AccountName) ([]vedette.AccountName, error) {
	if f.may == nil {
		return accounts, nil
	}
	var kept []vedette.AccountName
	for _, account := range accounts {
		switch {
		case f.may(account):
			kept = append(kept, account)
		case slices.Contains(f.patterns, string(account)):
			return nil, vedette.Errorf(vedette.Denied, "you may not read account %s", account)
		}
	}
	return kept, nil
}

// allow makes the changes of accounts pass as far as they may be read. It is
// called again while the hub asks for each change whether it is wanted.
func (s *stream) allow(ctx context.Context) error {
	may, err := s.Authority.Readable(ctx, authorize.CallerOf(s.request))
	if err != nil || may == nil {
		return err
	}
	if s.may.Swap(&may) != nil {
		return nil
	}
	s.filter.may = func(account vedette.AccountName) bool { return (*s.may.Load())(account) }
	return nil
}
