package api

import (
	"context"
	"net/url"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// filterParameters are what objects and their changes are chosen by.
var filterParameters = []string{"account", "kind", "namespace", "application", "name", "selector"}

// filter is a choice of objects as a request writes it.
type filter struct {
	store.Query          // without accounts and kinds
	patterns    []string // of account names
	names       []string // of kinds
	accounts    []vedette.AccountName
	kinds       []vedette.Kind
	resources   []vedette.Resource // of the kinds
	// may says which accounts may be read; nil for all of them.
	may func(vedette.AccountName) bool
}

func parseFilter(values url.Values) (filter, error) {
	f := filter{patterns: many(values, "account"), names: many(values, "kind")}
	for name, field := range map[string]*string{"namespace": &f.Namespace, "application": &f.Application, "name": &f.Name, "selector": &f.Selector} {
		given, err := one(values, name)
		if err != nil {
			return f, err
		}
		*field = given
	}
	if values.Has("kind") && len(f.names) == 0 {
		return f, vedette.Errorf(vedette.Invalid, "the parameter kind is empty: leave it out for all kinds")
	}
	if values.Has("account") && len(f.patterns) == 0 {
		return f, vedette.Errorf(vedette.Invalid, "the parameter account is empty: leave it out for all accounts")
	}
	return f, nil
}

// resolve finds the accounts and kinds that the filter names, and with them the
// inventory that it found them in.
func (a *api) resolve(ctx context.Context, f *filter) (*inventory, error) {
	return find(ctx, a.catalog, func(i *inventory) (*inventory, error) {
		var err error
		if f.accounts, err = i.named(f.patterns); err != nil {
			return nil, err
		}
		if f.accounts, err = f.readable(f.accounts); err != nil {
			return nil, err
		}
		if f.resources, err = i.kinds(f.accounts, f.names); err != nil {
			return nil, err
		}
		f.kinds = nil
		for _, r := range f.resources {
			f.kinds = append(f.kinds, r.Kind)
		}
		return i, nil
	})
}

// query returns what to ask the store for.
func (f filter) query() store.Query {
	q := f.Query
	q.Kinds = f.kinds
	if f.restricted() {
		q.Accounts = f.accounts
	}
	return q
}

// nothing reports whether the filter's accounts match none that there is: to
// the store no account would mean all of them.
func (f filter) nothing() bool { return f.restricted() && len(f.accounts) == 0 }

func (f filter) restricted() bool { return len(f.patterns) > 0 || f.may != nil }

// page reads the objects that a filter chooses, and how fresh they are. What is
// known of freshness is read before the objects, so that it never promises more
// than they hold.
func (a *api) page(ctx context.Context, f *filter) (store.Page, freshness, error) {
	i, err := a.resolve(ctx, f)
	if err != nil {
		return store.Page{}, freshness{}, err
	}
	fresh := a.freshOf(i, *f, time.Now())
	if f.nothing() {
		return store.Page{}, fresh, nil
	}
	page, err := a.Store.Objects(ctx, f.query())
	return page, fresh, err
}
