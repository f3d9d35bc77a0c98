package api

import (
	"cmp"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/api/parameters"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store/read"
)

func (a *api) listObjects(w http.ResponseWriter, r *http.Request) error {
	values, err := parameters.Parse(r, append(filterParameters, "limit", "cursor", "include", "as")...)
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
	f.Limit, err = parameters.Limit(values)
	if err != nil {
		return err
	}
	f.After, err = parameters.Single(values, "cursor")
	if err != nil {
		return err
	}
	include, err := parameters.Enum(values, "include", includeBody, includeLabels)
	if err != nil {
		return err
	}
	as, err := parameters.Enum(values, "as", "table")
	if err != nil {
		return err
	}
	f.Bodies = include == includeBody
	f.Bytes = a.PageBytes
	release, err := a.ReadLimiter.Acquire(r.Context(), readlimit.CallerOf(r), a.pageCost(f.Query))
	if err != nil {
		return err
	}
	defer release()
	if as == "table" {
		return a.listTable(w, r, f, include)
	}
	page, fresh, err := a.readPage(r, &f)
	if err != nil {
		return err
	}
	return writePage(w, r, fresh, page)
}

// The values of the parameter include.
const (
	includeBody   = "body"
	includeLabels = "labels" // of the rows of a table; objects have them always
)

// rowCost is the approximate memory of a row without its body, including its JSON.
const rowCost = 2 << 10

// pageCost is the memory that a page may take: its bytes both compressed, in the worst case,
// and uncompressed.
func (a *api) pageCost(q read.Query) int64 {
	if q.Bodies {
		return 2 * q.Bytes
	}
	return min(2*q.Bytes, rowCost*int64(cmp.Or(q.Limit, parameters.DefaultLimit)))
}

// listView is a page of items.
type listView[T any] struct {
	Items  []T    `json:"items"`
	Total  int64  `json:"total"`            // of all pages
	Cursor string `json:"cursor,omitempty"` // of the next page; empty on the last
}

// clusterScoped is the namespace in paths of cluster-scoped objects.
const clusterScoped = "_"

func (a *api) getObject(w http.ResponseWriter, r *http.Request) error {
	if _, err := parameters.Parse(r); err != nil {
		return err
	}
	account := r.PathValue("account")
	if err := a.Authorizer.CheckAccount(r.Context(), authorize.CallerOf(r), vedette.AccountName(account), authorize.Read); err != nil {
		return err
	}
	named, err := a.resolveObject(r, account)
	if err != nil {
		return err
	}
	feeds := a.feedsOf(named.account, named.kind, named.key.Namespace, time.Now())
	if feeds.cached {
		err := a.writeStored(w, r, named)
		if feeds.isLive() || vedette.KindOf(err) != vedette.NotFound {
			return err
		}
	}
	return a.writeLive(w, r, named, feeds)
}

func (a *api) writeStored(w http.ResponseWriter, r *http.Request, o namedObject) error {
	f := filter{kinds: []vedette.Kind{o.key.Kind}, Query: read.Query{Namespace: o.key.Namespace}}
	fresh := a.accountFreshness([]*accountfeeds.Account{o.account}, f, time.Now())
	row, release, err := a.readObject(r, o.account.Name, o.key)
	if err != nil {
		return err
	}
	defer release()
	return writeWithFreshness(w, r, fresh, appendObject(nil, &row))
}

// readObject reads an object for a request. Its memory is reserved until release is called.
func (a *api) readObject(r *http.Request, account vedette.AccountName, key vedette.Key) (read.Row, func(), error) {
	//nolint:contextcheck // it takes the context of the request
	return readlimit.Read(r.Context(), a.ReadLimiter, readlimit.CallerOf(r), func() (read.Row, int64, error) {
		row, err := a.Store.Object(r.Context(), account, key)
		return row, rowCost + objectCopies*int64(len(row.Body)), err
	})
}

// objectCopies is how often an object's bytes are in memory during a request: as read, and in
// the response, whose buffer grows by doubling.
const objectCopies = 3

type namedObject struct {
	account *accountfeeds.Account
	kind    *meantKind
	key     vedette.Key
}

func (a *api) resolveObject(r *http.Request, account string) (namedObject, error) {
	key := vedette.Key{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	if key.Namespace == clusterScoped {
		key.Namespace = ""
	}
	//nolint:contextcheck // it takes the context of the request
	return accountfeeds.With(r.Context(), a.accountFeeds, func(i *accountfeeds.List) (namedObject, error) {
		entry := i.Account(vedette.AccountName(account))
		if entry == nil {
			return namedObject{}, i.NotFound(account)
		}
		accounts := []*accountfeeds.Account{entry}
		m, err := a.meaningOf(r.Context(), askerOf(r), accounts, accountfeeds.ResourcesOf(accounts), r.PathValue("kind"))
		if err == nil && m.isCategory {
			err = vedette.Errorf(vedette.Invalid, "%.100q is a category and not a kind", m.name)
		}
		if err != nil {
			return namedObject{}, err
		}
		key.Kind = m.kinds[0].Kind
		return namedObject{entry, m.kinds[0], key}, checkScope(m.kinds[0].Resource, key)
	})
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
