package api

import (
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/store"
)

func (a *api) listObjects(w http.ResponseWriter, r *http.Request) error {
	values, err := parameters(r, append(filterParameters, "limit", "cursor", "include", "as")...)
	if err != nil {
		return err
	}
	f, err := parseFilter(values)
	if err != nil {
		return err
	}
	if err := a.allow(r, &f); err != nil {
		return err
	}
	if f.Limit, err = limit(values); err != nil {
		return err
	}
	if f.After, err = one(values, "cursor"); err != nil {
		return err
	}
	include, err := choice(values, "include", "body")
	if err != nil {
		return err
	}
	as, err := choice(values, "as", "table")
	if err != nil {
		return err
	}
	f.Bodies = include == "body"
	if as == "table" {
		return a.listTable(w, r, f)
	}
	page, fresh, err := a.page(r.Context(), &f)
	if err != nil {
		return err
	}
	return writeFresh(w, r, fresh, appendPage(nil, page))
}

// list is a page of anything.
type list[T any] struct {
	Items  []T    `json:"items"`
	Total  int64  `json:"total"`            // of all pages
	Cursor string `json:"cursor,omitempty"` // of the next page; none on the last
}

// clusterScoped stands in paths for the namespace of what has none.
const clusterScoped = "_"

func (a *api) getObject(w http.ResponseWriter, r *http.Request) error {
	if _, err := parameters(r); err != nil {
		return err
	}
	account := r.PathValue("account")
	if err := a.Authority.Account(r.Context(), authorize.CallerOf(r), vedette.AccountName(account), authorize.Read); err != nil {
		return err
	}
	i, key, err := a.key(r, account)
	if err != nil {
		return err
	}
	fresh := a.freshOf(i, filter{accounts: []vedette.AccountName{vedette.AccountName(account)}, kinds: []vedette.Kind{key.Kind},
		Query: store.Query{Namespace: key.Namespace}}, time.Now())
	row, err := a.Store.Object(r.Context(), vedette.AccountName(account), key)
	if err != nil {
		return err
	}
	return writeFresh(w, r, fresh, appendObject(nil, &row))
}

// key reads an object's name from a path.
func (a *api) key(r *http.Request, account string) (*inventory, vedette.Key, error) {
	key := vedette.Key{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	if key.Namespace == clusterScoped {
		key.Namespace = ""
	}
	i, err := find(r.Context(), a.catalog, func(i *inventory) (*inventory, error) {
		if _, ok := i.account(vedette.AccountName(account)); !ok {
			return nil, i.noAccount(account)
		}
		kinds, err := i.kinds([]vedette.AccountName{vedette.AccountName(account)}, []string{r.PathValue("kind")})
		if err != nil {
			return nil, err
		}
		key.Kind = kinds[0].Kind
		return i, checkScope(kinds[0], key)
	})
	return i, key, err
}

func checkScope(resource vedette.Resource, key vedette.Key) error {
	switch {
	case resource.Namespaced && key.Namespace == "":
		return vedette.Errorf(vedette.Invalid, "a %s stands in a namespace: write it in place of %s", key.Kind, clusterScoped)
	case !resource.Namespaced && key.Namespace != "":
		return vedette.Errorf(vedette.Invalid, "a %s stands in no namespace: write %s in place of %.253s", key.Kind, clusterScoped, key.Namespace)
	}
	return nil
}
