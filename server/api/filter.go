package api

import (
	"context"
	"net/url"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// filterParameters are the parameters that select objects and changes.
var filterParameters = []string{"account", "kind", "namespace", "application", "name", "selector"}

// filter selects objects by the parameters of a request.
type filter struct {
	store.Query                 // without accounts and kinds
	patterns    accountPatterns // of the accounts
	kindNames   []string        // as the user wrote them
	accounts    []*accountEntry // that are selected; nil for all accounts, see isRestricted
	kinds       []vedette.Kind
	resources   []vedette.Resource // resources of the kinds
	// canRead reports whether an account may be read. Nil means all accounts.
	canRead func(vedette.AccountName) bool
}

func parseFilter(values url.Values) (filter, error) {
	var f filter
	var err error
	if f.patterns, err = parseAccounts(values); err != nil {
		return f, err
	}
	if f.kindNames, err = listValues(values, "kind", maxKinds); err != nil {
		return f, err
	}
	for name, field := range map[string]*string{"namespace": &f.Namespace, "application": &f.Application, "name": &f.Name,
		"selector": &f.Selector} {
		value, err := singleValue(values, name)
		if err != nil {
			return f, err
		}
		*field = value
	}
	if values.Has("kind") && len(f.kindNames) == 0 {
		return f, vedette.Errorf(vedette.Invalid, "the parameter kind is empty; omit it to select all kinds")
	}
	if values.Has("account") && f.patterns.selectAll() {
		return f, vedette.Errorf(vedette.Invalid, "the parameter account is empty; omit it to select all accounts")
	}
	return f, nil
}

// resolve sets the accounts and kinds that the filter names, and returns the inventory that it
// used.
func (a *api) resolve(ctx context.Context, f *filter) (*inventory, error) {
	return withInventory(ctx, a.inventory, func(i *inventory) (*inventory, error) {
		served := i.resources
		if f.isRestricted() {
			var err error
			f.accounts, err = f.selectAccounts(i)
			if err != nil {
				return nil, err
			}
			served = resourcesOf(f.accounts)
		}
		var err error
		f.resources, err = findResources(served, f.kindNames)
		f.kinds = kindsOf(f.resources)
		return i, err
	})
}

// selectAccounts returns the accounts that the filter selects and the caller may read.
func (f *filter) selectAccounts(i *inventory) ([]*accountEntry, error) {
	accounts, err := i.selectAccounts(f.patterns)
	if err != nil {
		return nil, err
	}
	return f.readableAccounts(accounts)
}

// query returns the query for the store.
func (f filter) query() store.Query {
	q := f.Query
	q.Kinds = f.kinds
	if f.isRestricted() {
		for _, account := range f.accounts {
			q.Accounts = append(q.Accounts, account.name)
		}
	}
	return q
}

// matchesNothing reports whether the filter names accounts but none exists. Such a filter must
// not reach the store, because an empty list there means all accounts.
func (f filter) matchesNothing() bool { return f.isRestricted() && len(f.accounts) == 0 }

func (f filter) isRestricted() bool { return !f.patterns.selectAll() || f.canRead != nil }

// readPage reads the objects that match a filter, and their freshness. It reads the freshness
// first, so that it never promises more than the objects contain.
func (a *api) readPage(ctx context.Context, f *filter) (store.Page, freshness, error) {
	i, err := a.resolve(ctx, f)
	if err != nil {
		return store.Page{}, freshness{}, err
	}
	fresh := a.freshnessOf(i, *f, time.Now())
	if f.matchesNothing() {
		return store.Page{}, fresh, nil
	}
	page, err := a.Store.Objects(ctx, f.query())
	return page, fresh, err
}
