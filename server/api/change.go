package api

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/views"
)

// streamChanges answers with server-sent events: what happens to the objects
// that a filter chooses, from the event "ready" on, after its commit. With
// initial=true all that is there comes first, as "added".
func (a *api) streamChanges(w http.ResponseWriter, r *http.Request) error {
	values, err := parameters(r, append(filterParameters, "include", "as", "initial")...)
	if err != nil {
		return err
	}
	f, err := parseFilter(values)
	if err != nil {
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
	initial, err := choice(values, "initial", "true", "false")
	if err != nil {
		return err
	}
	f.Bodies = include == "body"
	s := &stream{api: a, request: r, out: newEvents(w), filter: f, initial: initial == "true"}
	if err := s.allow(r.Context()); err != nil {
		return err
	}
	if err := s.prepare(r.Context(), as == "table"); err != nil {
		return err
	}
	release, err := a.Streams.Acquire(r.Context(), readlimit.CallerKey(r), streamCost)
	if err != nil {
		return err
	}
	defer release()
	if r.Method == http.MethodHead {
		s.out.open() // which would have been followed by events without end
		return nil
	}
	s.run(r.Context())
	return nil
}

// streamCost is what a stream takes while it waits: above all the changes that its
// reader may be behind.
const streamCost = 512 << 10

// stream is one reader of changes.
type stream struct {
	*api
	request  *http.Request
	out      *events
	filter   filter
	initial  bool
	may      atomic.Pointer[func(vedette.AccountName) bool] // what filter.may goes by
	selector labels.Selector
	table    *views.View // nil: objects are shown whole
	// shown are the objects that the reader knows. It is kept only where more
	// than the key decides, since then a change can take an object out of what
	// was chosen, and its deletion no longer tells whether it was in.
	shown map[place]bool
}

// place is where an object stands in the whole fleet.
type place struct {
	account vedette.AccountName
	key     vedette.Key
}

func (s *stream) prepare(ctx context.Context, table bool) error {
	var err error
	if s.selector, err = labels.Parse(s.filter.Selector); err != nil {
		return vedette.Errorf(vedette.Invalid, "the label selector %.200q cannot be read: %w", s.filter.Selector, err)
	}
	if _, err := s.resolve(ctx, &s.filter); err != nil {
		return err
	}
	if s.filter.Selector != "" || s.filter.Application != "" {
		s.shown = map[place]bool{}
	}
	if !table {
		return nil
	}
	resource, err := s.filter.single()
	view := views.Of(resource.Kind)
	s.table = &view
	return err
}

// run subscribes first and reads then, so that nothing falls between. A change
// that both saw is told twice, with the same version.
func (s *stream) run(ctx context.Context) {
	sub := s.Hub.Subscribe(s.wants)
	defer sub.Close()
	err := s.begin(ctx)
	heartbeat := time.NewTicker(s.Heartbeat)
	defer heartbeat.Stop()
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-heartbeat.C:
			// What the reader may see can have changed.
			if err = s.allow(ctx); err == nil {
				err = s.freshness(ctx, "heartbeat")
			}
		case change, ok := <-sub.Changes():
			if !ok {
				_ = s.out.send("lagged", map[string]string{"message": "changes were lost because the reader was too slow: read the objects anew"})
				return
			}
			err = s.forward(ctx, gather(change, sub.Changes()))
		}
	}
	if ctx.Err() == nil && !errors.Is(err, errGone) {
		_ = s.out.send("error", errorBody{s.explain(s.request, err)})
	}
}

// wants is asked for each change of the whole fleet, under the hub's lock: it
// looks at names only. Accounts are matched by pattern, for those to come.
func (s *stream) wants(c store.Change) bool {
	f := &s.filter
	if f.may != nil && !f.may(c.Account) || len(f.patterns) > 0 && !matchAny(f.patterns, c.Account) ||
		f.Namespace != "" && f.Namespace != c.Key.Namespace || f.Name != "" && f.Name != c.Key.Name {
		return false
	}
	for _, kind := range f.kinds {
		if kind == c.Key.Kind {
			return true
		}
	}
	return len(f.kinds) == 0
}

func (s *stream) begin(ctx context.Context) error {
	s.out.open()
	if s.table != nil {
		resource := s.filter.resources[0]
		if err := s.out.send("columns", columnsView{Kind: resource.Kind.String(), Scoped: resource.Namespaced, Columns: columnsOf(*s.table)}); err != nil {
			return err
		}
	}
	if s.initial || s.shown != nil {
		if err := s.list(ctx); err != nil {
			return err
		}
	}
	return s.freshness(ctx, "ready")
}

type columnsView struct {
	Kind    string       `json:"kind"`
	Scoped  bool         `json:"namespaced"`
	Columns []columnView `json:"columns"`
}

// list goes through what is there, page by page.
func (s *stream) list(ctx context.Context) error {
	if s.filter.nothing() {
		return nil
	}
	query := s.filter.query()
	query.Limit, query.SkipTotal, query.Bodies, query.Bytes = usualLimit, true, query.Bodies && s.initial, min(s.PageBytes, streamPage)
	for {
		next, err := s.listPage(ctx, query)
		if query.After = next; err != nil || next == "" {
			return err
		}
	}
}

// streamPage bounds a page of what is there first: a reader that takes it slowly
// holds its memory as long.
const streamPage = 1 << 20

// listPage tells of one page, and returns the cursor of the next one.
func (s *stream) listPage(ctx context.Context, query store.Query) (next string, err error) {
	release, err := s.Reads.Acquire(ctx, readlimit.CallerKey(s.request), s.pageCost(query))
	if err != nil {
		return "", err
	}
	defer release()
	page, err := s.Store.Objects(ctx, query)
	if err != nil {
		return "", err
	}
	defer s.out.within(patience)()
	for i := range page.Items {
		row := &page.Items[i]
		s.show(place{row.Account, row.Key})
		if s.initial {
			if err := s.tell(string(store.Added), row); err != nil {
				return "", err
			}
		}
		page.Items[i] = store.Row{}
	}
	return page.Next, nil
}

func (s *stream) show(at place) {
	if s.shown != nil {
		s.shown[at] = true
	}
}

// freshness tells which feeds are stale; the others, of a fleet, are too many to
// repeat each few seconds.
func (s *stream) freshness(ctx context.Context, event string) error {
	i, err := s.catalog.get(ctx)
	if err != nil {
		return err
	}
	f := s.filter
	if f.accounts, err = i.named(f.patterns); vedette.KindOf(err) == vedette.NotFound {
		err = nil // an account that was removed meanwhile has nothing more to tell
	}
	if err == nil {
		f.accounts, err = f.readable(f.accounts)
	}
	if err != nil {
		return err
	}
	fresh := s.freshOf(i, f, time.Now())
	stale := []feedFresh{}
	for _, feed := range fresh.Feeds {
		if feed.Stale {
			stale = append(stale, feed)
		}
	}
	return s.out.send(event, freshness{Stale: fresh.Stale, Feeds: stale})
}
