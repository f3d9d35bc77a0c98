package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/api/parameters"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/rest"
)

// The limits of an answer with names. It completes what somebody types, so a late answer is worth nothing.
const (
	defaultNames = 100
	maxNames     = 1000
	namesTimeout = 500 * time.Millisecond // of the store
	// maxNamePages bounds the rows that are read. The accounts of a fleet mostly have objects of the same names.
	maxNamePages = 10
)

// namesView are names that begin with a prefix.
type namesView struct {
	Items []string `json:"items"` // sorted
	// Complete is false if there may be more names.
	Complete bool `json:"complete"`
}

// The values of the parameter of: what to name.
const (
	namesOfAccounts   = "accounts"
	namesOfKinds      = "kinds"
	namesOfNamespaces = "namespaces"
	namesOfObjects    = "objects"
)

// listNames answers the completion of the command line in one small request.
func (a *api) listNames(w http.ResponseWriter, r *http.Request) error {
	values, err := parameters.Parse(r, "of", "prefix", "account", "kind", "namespace", "limit")
	if err != nil {
		return err
	}
	q, err := parseNameQuery(values)
	if err != nil {
		return err
	}
	if q.of == namesOfAccounts || q.of == namesOfKinds { // open to everyone, like their lists
		return a.writeInventoryNames(w, r, q)
	}
	if err := a.restrictFilter(r, &q.filter); err != nil {
		return err
	}
	release, err := a.ReadLimiter.Acquire(r.Context(), readlimit.CallerOf(r), rowCost*parameters.DefaultLimit)
	if err != nil {
		return err
	}
	defer release()
	i, err := a.resolve(r, &q.filter)
	if err != nil {
		return err
	}
	names, err := a.objectNames(r.Context(), i, q)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, names)
}

type nameQuery struct {
	filter
	of, prefix string
	limit      int
}

func parseNameQuery(values url.Values) (q nameQuery, err error) {
	if q.of, err = parameters.Enum(values, "of", namesOfAccounts, namesOfKinds, namesOfNamespaces, namesOfObjects); err != nil {
		return q, err
	}
	if q.prefix, err = parameters.Single(values, "prefix"); err != nil {
		return q, err
	}
	if q.limit, err = parameters.Limit(values); err != nil {
		return q, err
	}
	if q.limit == 0 {
		q.limit = defaultNames
	}
	q.limit = min(q.limit, maxNames)
	if q.filter, err = parseFilter(values); err != nil {
		return q, err
	}
	switch {
	case q.of == "":
		return q, vedette.Errorf(vedette.Invalid, "the parameter of is missing: say what to name, for example of=accounts")
	case q.of == namesOfObjects && len(q.kindNames) == 0:
		return q, vedette.Errorf(vedette.Invalid, "the parameter kind is missing: names of objects are those of a kind")
	case q.of == namesOfNamespaces:
		q.kindNames = []string{"namespaces"}
	case q.of != namesOfObjects:
		q.kindNames = nil
	}
	q.filter.NamePrefix = q.prefix
	q.onlyReported = true // a late answer is worth nothing, and the store has no objects of other kinds
	return q, nil
}

func (a *api) writeInventoryNames(w http.ResponseWriter, r *http.Request, q nameQuery) error {
	i, err := a.resolve(r, &q.filter)
	if err != nil {
		return err
	}
	set := nameSet{prefix: q.prefix, limit: q.limit}
	resources := i.Resources
	accounts := i.Accounts
	if q.isRestricted() {
		accounts, resources = q.accounts, accountfeeds.ResourcesOf(q.accounts)
	}
	if q.of == namesOfAccounts {
		for _, account := range accounts {
			set.add(string(account.Name))
		}
		return rest.WriteJSON(w, r, set.view())
	}
	for _, resource := range resources {
		set.add(resourceName(resource))
	}
	return rest.WriteJSON(w, r, set.view())
}

// resourceName returns the plural by which a user names a kind: with its group, unless it is one of Kubernetes itself.
func resourceName(r vedette.Resource) string {
	if vedette.IsNativeGroup(r.Kind.Group) {
		return r.Plural
	}
	return r.Plural + "." + r.Kind.Group
}

// objectNames returns the names of stored objects, or of namespaces. If the store takes too long, it returns those that
// were found until then.
func (a *api) objectNames(ctx context.Context, i *accountfeeds.List, q nameQuery) (namesView, error) {
	set := nameSet{prefix: q.prefix, limit: q.limit}
	if q.of == namesOfNamespaces {
		accounts := i.Accounts
		if q.isRestricted() {
			accounts = q.accounts
		}
		for _, account := range accounts {
			for n := range account.Feeds {
				set.add(account.Feeds[n].Feed.Namespace) // of an account that is restricted to namespaces
			}
		}
	}
	if q.matchesNothing() {
		return set.view(), nil
	}
	limited, cancel := context.WithTimeout(ctx, namesTimeout)
	defer cancel()
	query := q.query()
	query.Limit = parameters.DefaultLimit
	query.SkipTotal = true
	query.Bytes = a.PageBytes
	for range maxNamePages {
		page, err := a.Store.Objects(limited, query)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil, limited.Err() != nil && ctx.Err() == nil:
			set.cut = true
			return set.view(), nil
		case err != nil:
			return namesView{}, err
		}
		for n := range page.Items {
			set.add(page.Items[n].Name)
		}
		query.After = page.Next
		if page.Next == "" || set.cut {
			return set.view(), nil
		}
	}
	set.cut = true
	return set.view(), nil
}

// nameSet collects different names that begin with a prefix, up to a limit.
type nameSet struct {
	prefix string
	limit  int
	names  map[string]bool
	cut    bool // there may be more
}

func (s *nameSet) add(name string) {
	switch {
	case name == "" || !strings.HasPrefix(name, s.prefix) || s.names[name]:
	case len(s.names) == s.limit:
		s.cut = true
	default:
		if s.names == nil {
			s.names = map[string]bool{}
		}
		s.names[strings.Clone(name)] = true
	}
}

func (s *nameSet) view() namesView {
	v := namesView{Items: make([]string, 0, len(s.names)), Complete: !s.cut}
	for name := range s.names {
		v.Items = append(v.Items, name)
	}
	slices.Sort(v.Items)
	return v
}
