package api

import (
	"cmp"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store"
)

func (a *api) listObjects(w http.ResponseWriter, r *http.Request) error {
	values, err := parseParameters(r, append(filterParameters, "limit", "cursor", "include", "as")...)
	if err != nil {
		return err
	}
	f, err := parseFilter(values)
	if err != nil {
		return err
	}
	if err := a.restrictFilter(r, &f); err != nil {
		return err
	}
	f.Limit, err = parseLimit(values)
	if err != nil {
		return err
	}
	f.After, err = singleValue(values, "cursor")
	if err != nil {
		return err
	}
	include, err := enumValue(values, "include", "body")
	if err != nil {
		return err
	}
	as, err := enumValue(values, "as", "table")
	if err != nil {
		return err
	}
	f.Bodies = include == "body" && as != "table"
	f.Bytes = a.PageBytes
	release, err := a.ReadLimiter.Acquire(r.Context(), readlimit.CallerOf(r), a.pageCost(f.Query))
	if err != nil {
		return err
	}
	defer release()
	if as == "table" {
		return a.listTable(w, r, f)
	}
	page, fresh, err := a.readPage(r.Context(), &f)
	if err != nil {
		return err
	}
	return writePage(w, r, fresh, page)
}

// rowCost is the approximate memory of a row without its body, including its JSON.
const rowCost = 2 << 10

// pageCost is the memory that a page may take: its bytes both compressed, in the worst case,
// and uncompressed.
func (a *api) pageCost(q store.Query) int64 {
	if q.Bodies {
		return 2 * q.Bytes
	}
	return min(2*q.Bytes, rowCost*int64(cmp.Or(q.Limit, defaultLimit)))
}

// defaultLimit is the number of objects per page without the parameter limit.
const defaultLimit = 500

// listView is a page of items.
type listView[T any] struct {
	Items  []T    `json:"items"`
	Total  int64  `json:"total"`            // of all pages
	Cursor string `json:"cursor,omitempty"` // of the next page; empty on the last
}

// clusterScoped is the namespace in paths of cluster-scoped objects.
const clusterScoped = "_"

func (a *api) getObject(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseParameters(r); err != nil {
		return err
	}
	account := r.PathValue("account")
	if err := a.Authorizer.CheckAccount(r.Context(), authorize.CallerOf(r), vedette.AccountName(account), authorize.Read); err != nil {
		return err
	}
	entry, key, err := a.resolveKey(r, account)
	if err != nil {
		return err
	}
	fresh := a.accountFreshness([]*accountEntry{entry}, filter{kinds: []vedette.Kind{key.Kind}, Query: store.Query{Namespace: key.Namespace}},
		time.Now())
	row, release, err := a.readObject(r, vedette.AccountName(account), key)
	if err != nil {
		return err
	}
	defer release()
	return writeWithFreshness(w, r, fresh, appendObject(nil, &row))
}

// readObject reads an object for a request. Its memory is reserved until release is called.
func (a *api) readObject(r *http.Request, account vedette.AccountName, key vedette.Key) (store.Row, func(), error) {
	//nolint:contextcheck // it takes the context of the request
	return readlimit.Read(r.Context(), a.ReadLimiter, readlimit.CallerOf(r), func() (store.Row, int64, error) {
		row, err := a.Store.Object(r.Context(), account, key)
		return row, rowCost + objectCopies*int64(len(row.Body)), err
	})
}

// objectCopies is how often an object's bytes are in memory during a request: as read, and in
// the response, whose buffer grows by doubling.
const objectCopies = 3

// resolveKey returns the account and the key of the object in a path.
func (a *api) resolveKey(r *http.Request, account string) (*accountEntry, vedette.Key, error) {
	key := vedette.Key{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	if key.Namespace == clusterScoped {
		key.Namespace = ""
	}
	entry, err := withInventory(r.Context(), a.inventory, func(i *inventory) (*accountEntry, error) {
		entry := i.account(vedette.AccountName(account))
		if entry == nil {
			return nil, i.accountNotFound(account)
		}
		kinds, err := findResources(resourcesOf([]*accountEntry{entry}), []string{r.PathValue("kind")})
		if err != nil {
			return nil, err
		}
		key.Kind = kinds[0].Kind
		return entry, checkScope(kinds[0], key)
	})
	return entry, key, err
}

func checkScope(resource vedette.Resource, key vedette.Key) error {
	switch {
	case resource.Namespaced && key.Namespace == "":
		return vedette.Errorf(vedette.Invalid, "kind %s is namespaced: use a namespace in place of %s", key.Kind, clusterScoped)
	case !resource.Namespaced && key.Namespace != "":
		return vedette.Errorf(vedette.Invalid, "kind %s is cluster-scoped: use %s in place of %.253s", key.Kind, clusterScoped, key.Namespace)
	}
	return nil
}
