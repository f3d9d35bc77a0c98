package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/parameters"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/tables"
)

// streamChanges sends changes of the objects that match a filter as server-sent events.
// Changes are sent after their commit, starting with the event "ready". With initial=true, all
// existing objects are sent first, as "added".
func (a *api) streamChanges(w http.ResponseWriter, r *http.Request) error {
	values, err := parameters.Parse(r, append(filterParameters, "include", "as", "initial")...)
	if err != nil {
		return err
	}
	f, err := parseFilter(values)
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
	initial, err := parameters.Enum(values, "initial", "true", "false")
	if err != nil {
		return err
	}
	f.Bodies = include == includeBody
	s := &changeStream{api: a, request: r, out: newSSEWriter(w), filter: f, initial: initial == "true", include: include}
	if err := s.initAccess(r.Context()); err != nil {
		return err
	}
	if err := s.prepare(as == "table"); err != nil {
		return err
	}
	grant, err := a.StreamLimiter.AcquireGrant(r.Context(), readlimit.CallerOf(r), streamCost)
	if err != nil {
		return err
	}
	defer grant.Release()
	if s.matched != nil {
		s.matched.pay = func(bytes int64) error { return grant.Grow(r.Context(), bytes) } //nolint:contextcheck // it is the stream's
	}
	if r.Method == http.MethodHead {
		s.out.start() // without a body, which would never end
		return nil
	}
	s.run(r.Context())
	return nil
}

// streamCost is the memory of an idle stream. Most of it is the queue of changes that the
// client has not read yet.
const streamCost = 512 << 10

type changeStream struct {
	*api
	request  *http.Request
	out      *sseWriter
	filter   filter
	initial  bool
	include  string                                         // what rows have besides their cells
	canRead  atomic.Pointer[func(vedette.AccountName) bool] // current permissions; filter.canRead reads them
	selector labels.Selector
	table    *tables.Table // nil sends whole objects
	// matched are the objects that the client knows. It is set only if the filter depends on
	// more than the key: a change can then make an object stop matching, and a deletion does
	// not show whether the object matched.
	matched *objectSet
}

// objectRef identifies an object among all accounts.
type objectRef struct {
	account vedette.AccountName
	key     vedette.Key
}

func (s *changeStream) prepare(table bool) error {
	var err error
	s.selector, err = read.ParseSelector(s.filter.Selector)
	if err != nil {
		return err
	}
	if _, err := s.resolveCached(s.request, &s.filter); err != nil {
		return err
	}
	if s.filter.Selector != "" || s.filter.Application != "" {
		s.matched = &objectSet{}
	}
	if !table {
		return nil
	}
	resource, err := s.filter.singleKind()
	view := tables.ForKind(resource.Kind)
	s.table = &view
	return err
}

// run subscribes before it reads, so that no change is missed. A change in between is sent
// twice, with the same resourceVersion.
func (s *changeStream) run(ctx context.Context) {
	sub := s.Hub.Subscribe(s.wants)
	defer sub.Close()
	if s.Hub.Await(ctx) != nil {
		return
	}
	err := s.start(ctx)
	heartbeat := time.NewTicker(s.HeartbeatInterval)
	defer heartbeat.Stop()
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-heartbeat.C:
			// Permissions can have changed.
			err = s.refreshAccess(ctx)
			if err == nil {
				err = s.sendFreshness(ctx, "heartbeat")
			}
		case change, ok := <-sub.Changes():
			if !ok {
				_ = s.out.send("lagged", map[string]string{"message": "changes were lost because the client is too slow; list the objects again"})
				return
			}
			err = s.forward(coalesce(change, sub.Changes()))
		}
	}
	if ctx.Err() == nil && !errors.Is(err, errClientGone) {
		_ = s.out.send("error", errorBody{s.publicError(s.request, err)})
	}
}

// wants reports whether the stream needs a change. The subscription calls it for every change of all
// accounts, so it compares names only. Accounts are matched by pattern, because new accounts can match
// later.
func (s *changeStream) wants(c commit.Change) bool {
	f := &s.filter
	if f.canRead != nil && !f.canRead(c.Account) || !f.patterns.Match(c.Account) ||
		f.Namespace != "" && f.Namespace != c.Key.Namespace || f.Name != "" && f.Name != c.Key.Name {
		return false
	}
	if slices.Contains(f.kinds, c.Key.Kind) {
		return true
	}
	return len(f.kinds) == 0
}

func (s *changeStream) start(ctx context.Context) error {
	s.out.start()
	if s.table != nil {
		resource := s.filter.resources[0]
		if err := s.out.send("columns",
			columnsView{Kind: resource.Kind.String(), Namespaced: resource.Namespaced, Columns: newColumnViews(*s.table)}); err != nil {
			return err
		}
	}
	if s.initial || s.matched != nil {
		if err := s.listExisting(ctx); err != nil {
			return err
		}
	}
	return s.sendFreshness(ctx, "ready")
}

type columnsView struct {
	Kind       string       `json:"kind"`
	Namespaced bool         `json:"namespaced"`
	Columns    []columnView `json:"columns"`
}

// listExisting sends the existing objects, page by page.
func (s *changeStream) listExisting(ctx context.Context) error {
	if s.filter.matchesNothing() {
		return nil
	}
	query := s.filter.query()
	query.Limit, query.SkipTotal = parameters.DefaultLimit, true
	query.Bodies, query.Bytes = query.Bodies && s.initial, min(s.PageBytes, streamPageBytes)
	for {
		next, err := s.listExistingPage(ctx, query)
		query.After = next
		if err != nil || next == "" {
			return err
		}
	}
}

// streamPageBytes bounds a page of existing objects. It is small because a slow client holds
// the memory for a long time.
const streamPageBytes = 1 << 20

// listExistingPage sends one page, and returns the cursor of the next one.
func (s *changeStream) listExistingPage(ctx context.Context, query read.Query) (next string, err error) {
	release, err := s.ReadLimiter.Acquire(ctx, readlimit.CallerOf(s.request), s.pageCost(query))
	if err != nil {
		return "", err
	}
	defer release()
	page, err := s.Store.Objects(ctx, query)
	if err != nil {
		return "", err
	}
	defer s.out.withDeadline(eventTimeout)()
	for i := range page.Items {
		row := &page.Items[i]
		if err := s.markMatched(objectRef{row.Account, row.Key}); err != nil {
			return "", err
		}
		if s.initial {
			if err := s.sendObject(string(commit.Added), row); err != nil {
				return "", err
			}
		}
		page.Items[i] = read.Row{}
	}
	return page.Next, nil
}

func (s *changeStream) markMatched(ref objectRef) error {
	if s.matched == nil {
		return nil
	}
	return s.matched.add(ref)
}

// sendFreshness sends the freshness of the accounts that match now.
func (s *changeStream) sendFreshness(ctx context.Context, event string) error {
	i, err := s.accountFeeds.Get(ctx)
	if err != nil {
		return err
	}
	f := s.filter
	if f.isRestricted() {
		f.accounts, err = f.selectAccounts(i)
		if vedette.KindOf(err) == vedette.NotFound {
			err = nil // the account was removed, so there are no more changes
		}
		if err != nil {
			return err
		}
	}
	fresh, err := s.freshnessOf(ctx, i, f, time.Now())
	if err != nil {
		return err
	}
	return s.out.send(event, fresh)
}
