package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/api/parameters"
	"github.com/vedette-io/vedette/server/store/read"
)

// filterParameters are the parameters that select objects and changes.
var filterParameters = []string{"account", "kind", "namespace", "application", "name", "selector"}

// filter selects objects by the parameters of a request.
type filter struct {
	read.Query                         // without accounts and kinds
	patterns   parameters.Patterns     // of the accounts
	kindNames  []string                // as the user wrote them
	accounts   []*accountfeeds.Account // that are selected; nil for all accounts, see isRestricted
	kinds      []vedette.Kind
	resources  []vedette.Resource // resources of the kinds
	// onlyReported is set if names mean kinds that agents report, so that no cluster is asked.
	onlyReported bool
	// canRead reports whether an account may be read. Nil means all accounts.
	canRead func(vedette.AccountName) bool
}

func parseFilter(values url.Values) (filter, error) {
	var f filter
	var err error
	if f.patterns, err = parameters.Accounts(values); err != nil {
		return f, err
	}
	if f.kindNames, err = parameters.List(values, "kind", parameters.MaxKinds); err != nil {
		return f, err
	}
	if err := parameters.Singles(values, map[string]*string{"namespace": &f.Namespace, "application": &f.Application, "name": &f.Name,
		"selector": &f.Selector}); err != nil {
		return f, err
	}
	if values.Has("kind") && len(f.kindNames) == 0 {
		return f, vedette.Errorf(vedette.Invalid, "the parameter kind is empty; omit it to select all kinds")
	}
	if values.Has("account") && f.patterns.SelectAll() {
		return f, vedette.Errorf(vedette.Invalid, "the parameter account is empty; omit it to select all accounts")
	}
	return f, nil
}

// resolve sets the accounts and kinds that the filter names, and returns the list that it
// used.
func (a *api) resolve(r *http.Request, f *filter) (*accountfeeds.List, error) {
	ctx := r.Context()
	return accountfeeds.With(ctx, a.accountFeeds, func(i *accountfeeds.List) (*accountfeeds.List, error) {
		accounts, reported := i.Accounts, i.Resources
		if f.isRestricted() {
			var err error
			if f.accounts, err = f.requireAccounts(i); err != nil {
				return nil, err
			}
			accounts, reported = f.accounts, accountfeeds.ResourcesOf(f.accounts)
		}
		var err error
		by := askerOf(r)
		by.asksNobody = f.onlyReported
		f.resources, err = a.findResources(ctx, by, accounts, reported, f.kindNames)
		f.kinds = kindsOf(f.resources)
		return i, err
	})
}

// resolveCached is resolve for what reads objects. Kinds that no selected account reports are an error, because an answer
// without objects would look as if there were none.
func (a *api) resolveCached(r *http.Request, f *filter) (*accountfeeds.List, error) {
	i, err := a.resolve(r, f)
	if err != nil || len(f.kinds) == 0 {
		return i, err
	}
	accounts, feeds := i.Accounts, int64(0)
	if f.isRestricted() {
		accounts, feeds = f.accounts, f.countFeeds(f.accounts)
	} else {
		feeds = int64(i.CountFeeds(f.kinds, f.Namespace)) // the number of accounts does not matter
	}
	if len(accounts) == 0 || feeds > 0 {
		return i, nil
	}
	return i, vedette.Errorf(vedette.NotCached, "no agent of %s reports %s%s: ask the clusters by the operations get and list, or add it to `kinds` in the "+
		"configuration of the agents", countOf(len(accounts), "account"), f.resources[0].Kind, inNamespace(f.Namespace))
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}

func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// findResources resolves the names of kinds in accounts, whose agents report some resources.
func (a *api) findResources(ctx context.Context, by asker, accounts []*accountfeeds.Account, reported []vedette.Resource, names []string) (
	[]vedette.Resource, error) {
	var out []vedette.Resource
	for _, name := range names {
		m, err := a.meaningOf(ctx, by, accounts, reported, name)
		if err == nil {
			err = m.checkUnique()
		}
		if err != nil {
			return nil, err
		}
		for _, k := range m.kinds {
			if !slices.ContainsFunc(out, func(o vedette.Resource) bool { return o.Kind == k.Kind }) {
				out = append(out, k.Resource)
			}
		}
	}
	return out, nil
}

// selectAccounts returns the accounts that the filter selects and the caller may read.
func (f *filter) selectAccounts(i *accountfeeds.List) ([]*accountfeeds.Account, error) {
	accounts, err := i.Select(f.patterns)
	if err != nil {
		return nil, err
	}
	return f.readableAccounts(accounts)
}

// requireAccounts is selectAccounts, but fails if patterns select none.
func (f *filter) requireAccounts(i *accountfeeds.List) ([]*accountfeeds.Account, error) {
	accounts, err := i.Require(f.patterns)
	if err != nil {
		return nil, err
	}
	accounts, err = f.readableAccounts(accounts)
	if err == nil && len(accounts) == 0 && !f.patterns.SelectAll() {
		err = vedette.Errorf(vedette.Denied, "you do not have permission to read any account that matches %.500s", strings.Join(f.patterns.Texts, ", "))
	}
	return accounts, err
}

func (f filter) query() read.Query {
	q := f.Query
	q.Kinds = f.kinds
	if f.isRestricted() {
		for _, account := range f.accounts {
			q.Accounts = append(q.Accounts, account.Name)
		}
	}
	return q
}

// matchesNothing reports whether the filter names accounts but none exists. Such a filter must
// not reach the store, because an empty list there means all accounts.
func (f filter) matchesNothing() bool { return f.isRestricted() && len(f.accounts) == 0 }

func (f filter) isRestricted() bool { return !f.patterns.SelectAll() || f.canRead != nil }

// readPage reads the objects that match a filter, and their freshness. It reads the freshness
// first, so that it never promises more than the objects contain.
func (a *api) readPage(r *http.Request, f *filter) (read.Page, freshness, error) {
	i, err := a.resolveCached(r, f)
	if err != nil {
		return read.Page{}, freshness{}, err
	}
	fresh, err := a.freshnessOf(r.Context(), i, *f, time.Now())
	if err != nil || f.matchesNothing() {
		return read.Page{}, fresh, err
	}
	page, err := a.Store.Objects(r.Context(), f.query())
	return page, fresh, err
}
