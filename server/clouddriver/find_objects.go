package clouddriver

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store"
)

// foundBytes is about what an object takes until it is sent, if only its name is shown.
const foundBytes = 512

// findObjects returns all objects that a query selects in accounts that the caller may read, sorted
// by account, namespace and name. They are counted first, so that their memory is bounded. Call
// release after the answer is sent.
func (a *api) findObjects(r *http.Request, q store.SearchQuery) (rows []store.SearchRow, release func(), err error) {
	readable, err := a.Authorizer.Readable(r.Context(), authorize.CallerOf(r))
	if err != nil {
		return nil, nil, err
	}
	settings, err := a.views.Settings(r.Context())
	if err != nil {
		return nil, nil, err
	}
	within := q.CanRead
	q.OnlyManaged = settings.OnlyManaged
	q.CanRead = func(account vedette.AccountName) bool {
		return (within == nil || within(account)) && (readable == nil || readable(account))
	}
	n, err := a.Store.CountSearch(r.Context(), q)
	if err != nil {
		return nil, nil, err
	}
	release, err = a.ReadLimiter.Acquire(r.Context(), readlimit.CallerKey(r), n*foundBytes)
	if err != nil {
		return nil, nil, err
	}
	q.Limit = int(n)
	rows, err = a.Store.Search(r.Context(), q)
	if err != nil {
		release()
		return nil, nil, err
	}
	rows = slices.DeleteFunc(rows, func(row store.SearchRow) bool { return !settings.ShowsKind(row.Kind, row.Application) })
	slices.SortFunc(rows, func(x, y store.SearchRow) int {
		return cmp.Or(cmp.Compare(x.Account, y.Account), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return rows, release, nil
}

// onlyKinds selects kinds by their names in Clouddriver.
func onlyKinds(kinds ...vedette.Kind) func(vedette.Kind) string {
	return func(kind vedette.Kind) string {
		if slices.Contains(kinds, kind) {
			return kindName(kind)
		}
		return ""
	}
}

func onlyAccount(account vedette.AccountName) func(vedette.AccountName) bool {
	return func(name vedette.AccountName) bool { return name == account }
}
