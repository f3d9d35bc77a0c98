package clouddriver

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/views"
)

// read finds the object that a full name means, which is not there where the name
// is none: in the store where its feed is live, and else in the cluster. What Orca waits for (that a deployment is
// stable, that a manifest is gone) must not be told of a state that was before.
func (a *api) read(ctx context.Context, at place, name string) (store.Row, error) {
	kind, object, err := splitName(name)
	if err != nil {
		return store.Row{}, vedette.Errorf(vedette.NotFound, "Manifest (account: %s, location: %s, name: %.300s) not found: %w", at.account, at.location, name, err)
	}
	row, err := a.find(ctx, at, kind, object)
	var failed *readFailure
	switch {
	case vedette.KindOf(err) == vedette.NotFound:
		err = vedette.Errorf(vedette.NotFound, "Manifest (account: %s, location: %s, name: %s) not found", at.account, at.location, name)
	case errors.As(err, &failed):
		err = failed.of(at.account, at.location, name)
	}
	return row, err
}

// find returns an object: vedette.NotFound where it or the account is not there,
// a readFailure where that can't be told.
func (a *api) find(ctx context.Context, at place, kind, name string) (store.Row, error) {
	feed, err := a.feed(ctx, at.account, kind, at.location)
	if a.elsewhere(err) {
		row, err := a.getLive(ctx, at, kind, name)
		return row, unread(ctx, err)
	}
	if err != nil {
		return store.Row{}, err
	}
	key := vedette.Key{Kind: feed.Feed.Kind, Namespace: at.location, Name: name}
	if !feed.Resource.Namespaced {
		key.Namespace = ""
	}
	return a.Store.Object(ctx, at.account, key)
}

// selection says which objects of a kind are listed, and what of them is needed.
type selection struct {
	application string // where the store lists them; the cluster knows none
	selector    string // of labels
	bodies      bool
}

// list goes through the objects of a kind, with errors as find's. A page is let go of
// before the next one is read: who needs little of an object must not keep it.
func (a *api) list(ctx context.Context, at place, kind string, s selection) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		if err := a.eachPage(ctx, at, kind, s, func(rows []store.Row) bool { return eachRow(rows, yield) }); err != nil {
			yield(store.Row{}, err)
		}
	}
}

func eachRow(rows []store.Row, yield func(store.Row, error) bool) bool {
	for i, row := range rows {
		rows[i] = store.Row{}
		if !yield(row, nil) {
			return false
		}
	}
	return true
}

// eachPage hands pages to do until that returns false.
func (a *api) eachPage(ctx context.Context, at place, kind string, s selection, do func([]store.Row) bool) error {
	feed, err := a.feed(ctx, at.account, kind, at.location)
	if a.elsewhere(err) {
		rows, err := a.listLive(ctx, at, kind, s.selector)
		if vedette.KindOf(err) == vedette.NotFound { // the kind, which says nothing of objects
			err = &readFailure{err.Error()}
		}
		do(rows)
		return unread(ctx, err)
	}
	if err != nil {
		return err
	}
	query := store.Query{Accounts: []vedette.AccountName{at.account}, Kinds: []vedette.Kind{feed.Feed.Kind}, Namespace: at.location,
		Application: s.application, Selector: s.selector, Bodies: s.bodies, SkipTotal: true, Bytes: pageBytes}
	if !feed.Resource.Namespaced {
		query.Namespace = ""
	}
	for {
		next, err := a.onePage(ctx, at, query, do)
		if query.After = next; err != nil || next == "" {
			return err
		}
	}
}

// pageBytes bounds a page of what is listed, and the memory that it takes: as the
// rows are stored, and unpacked.
const pageBytes = 512 << 10

// onePage hands one page to do, and returns the cursor of the next one, if that wants
// it.
func (a *api) onePage(ctx context.Context, at place, query store.Query, do func([]store.Row) bool) (next string, err error) {
	release, err := a.Reads.Acquire(ctx, at.sender, 2*pageBytes)
	if err != nil {
		return "", err
	}
	defer release()
	page, err := a.Store.Objects(ctx, query)
	if err != nil || !do(page.Items) {
		return "", err
	}
	return page.Next, nil
}

// elsewhere reports whether the store can't answer and the cluster may.
func (a *api) elsewhere(err error) bool {
	var failed *readFailure
	return a.Dispatch != nil && errors.As(err, &failed)
}

// unread makes a readFailure of what a cluster or its agent says, unless it is
// that something is not there, or nobody waits for it any more.
func unread(ctx context.Context, err error) error {
	switch {
	case err == nil || vedette.KindOf(err) == vedette.NotFound:
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	}
	return &readFailure{err.Error()}
}

// feed returns the live feed that an object of a kind would come by.
func (a *api) feed(ctx context.Context, account vedette.AccountName, kind, location string) (store.FeedStatus, error) {
	feeds, err := a.Store.Feeds(ctx, account)
	if err != nil {
		return store.FeedStatus{}, err
	}
	if len(feeds) == 0 {
		if _, err := a.account(ctx, account); err != nil {
			return store.FeedStatus{}, err
		}
		return store.FeedStatus{}, &readFailure{"the account's agent has not said yet what it caches"}
	}
	feed, err := choose(feeds, kind, location)
	switch {
	case err != nil:
		return feed, err
	case !a.Live(account):
		return feed, &readFailure{"no agent is connected for this account, and what is stored may be out of date"}
	case feed.State != vedette.FeedLive:
		return feed, &readFailure{"the agent does not follow this kind now: " + string(feed.State) + " " + feed.Message}
	}
	return feed, nil
}

// of completes a failure as Clouddriver words it.
func (e *readFailure) of(account vedette.AccountName, location, name string) error {
	return &readFailure{"Failed to read manifest: (account: " + string(account) + ", location: " + location + ", name: " + name + "): " + e.message}
}

func choose(feeds []store.FeedStatus, kind, location string) (store.FeedStatus, error) {
	var resources []vedette.Resource
	for _, f := range feeds {
		resources = append(resources, f.Resource)
	}
	resource, err := views.Find(resources, kind)
	if err != nil {
		return store.FeedStatus{}, &readFailure{err.Error()}
	}
	for _, namespace := range []string{location, ""} {
		at := slices.IndexFunc(feeds, func(f store.FeedStatus) bool {
			return f.Feed == vedette.Feed{Kind: resource.Kind, Namespace: namespace}
		})
		if at >= 0 {
			return feeds[at], nil
		}
	}
	if slices.ContainsFunc(feeds, func(f store.FeedStatus) bool { return f.Feed.Kind == resource.Kind }) {
		return store.FeedStatus{}, &readFailure{"the account is restricted to namespaces, and this is none of them"}
	}
	return store.FeedStatus{}, &readFailure{"the account's agent does not cache this kind"}
}
