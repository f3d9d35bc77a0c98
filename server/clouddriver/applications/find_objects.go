package applications

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store/read"
)

const (
	// foundBytes is about what an object takes until it is sent, if only its name is shown.
	foundBytes = 512
	// maxFoundObjects bounds the objects of one answer, which has no pages. It is more than Deck can show.
	maxFoundObjects = 50_000
)

// findObjects returns all objects that a query selects in accounts that the caller may read, sorted
// by account, namespace and name. They are counted first, so that their memory is bounded. The error is
// vedette.Unavailable if they are too many, because no part of them may pass for all. Call release after the
// answer is sent.
func (a *api) findObjects(r *http.Request, q read.SearchQuery) (rows []read.SearchRow, release func(), err error) {
	readable, err := a.Authorizer.Readable(r.Context(), authorize.CallerOf(r))
	if err != nil {
		return nil, nil, err
	}
	settings, err := a.Views.Settings(r.Context())
	if err != nil {
		return nil, nil, err
	}
	within := q.CanRead
	q.OnlyManaged, q.Rules = settings.OnlyManaged, settings.SearchRules()
	q.CanRead = func(account vedette.AccountName) bool {
		return (within == nil || within(account)) && (readable == nil || readable(account))
	}
	n, err := a.Store.CountSearch(r.Context(), q)
	if err != nil {
		return nil, nil, err
	}
	if n > maxFoundObjects {
		return nil, nil, tooManyFound()
	}
	q.Limit = int(n) + maxAddedObjects
	release, err = a.ReadLimiter.Acquire(r.Context(), readlimit.CallerOf(r), int64(q.Limit)*foundBytes+read.MaxSearchNames)
	if err != nil {
		return nil, nil, err
	}
	rows, err = a.Store.Search(r.Context(), q)
	if err == nil && len(rows) == q.Limit { // more were added meanwhile than one more request is for
		err = tooManyFound()
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	slices.SortFunc(rows, func(x, y read.SearchRow) int {
		return cmp.Or(cmp.Compare(x.Account, y.Account), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return rows, release, nil
}

// maxAddedObjects is how many objects may be added while they are found.
const maxAddedObjects = 1000

func tooManyFound() error {
	return vedette.Errorf(vedette.Unavailable, "more than %d objects would be shown together: ask for one account or one name", maxFoundObjects)
}

// onlyKinds selects kinds by their names in Clouddriver.
func onlyKinds(kinds ...vedette.Kind) func(vedette.Kind) string {
	return func(kind vedette.Kind) string {
		if slices.Contains(kinds, kind) {
			return manifest.KindName(kind)
		}
		return ""
	}
}

func onlyAccount(account vedette.AccountName) func(vedette.AccountName) bool {
	return func(name vedette.AccountName) bool { return name == account }
}
