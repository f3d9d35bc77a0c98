package manifests

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/tables"
)

// readManifest finds an object by its full name. It reads from the store if the feed is live,
// otherwise from the cluster: Orca waits until a deployment is stable or a manifest is
// deleted, and must not see an earlier state. An invalid name is not found.
func (a *api) readManifest(ctx context.Context, scope web.Scope, name string) (read.Row, error) {
	kind, object, err := manifest.SplitName(name)
	if err != nil {
		return read.Row{}, manifestNotFound(scope, name)
	}
	row, err := a.findObject(ctx, scope, kind, object)
	var readErr *readError
	switch {
	case vedette.KindOf(err) == vedette.NotFound:
		err = manifestNotFound(scope, name)
	case errors.As(err, &readErr):
		err = readErr.forManifest(scope.Account, scope.Location, name)
	}
	return row, err
}

func manifestNotFound(scope web.Scope, name string) error {
	return vedette.Errorf(vedette.NotFound, "Manifest (account: %s, location: %s, name: %.300s) not found", scope.Account, scope.Location, name)
}

// findObject returns an object. The error is vedette.NotFound if the object or the account
// does not exist, and a readError if this is unknown.
func (a *api) findObject(ctx context.Context, scope web.Scope, kind, name string) (read.Row, error) {
	scope, err := a.withNamespace(ctx, scope)
	if err != nil {
		return read.Row{}, err
	}
	feed, err := a.findFeed(ctx, scope.Account, kind, scope.Location)
	if a.shouldReadLive(err) {
		row, err := a.getLive(ctx, scope, kind, name)
		return row, asReadError(ctx, err)
	}
	if err != nil {
		return read.Row{}, err
	}
	return a.storedObject(ctx, scope, feed, name)
}

func (a *api) storedObject(ctx context.Context, scope web.Scope, feed read.FeedStatus, name string) (read.Row, error) {
	key := vedette.Key{Kind: feed.Feed.Kind, Namespace: scope.Location, Name: name}
	if !feed.Resource.Namespaced {
		key.Namespace = ""
	}
	return a.Store.Object(ctx, scope.Account, key)
}

// withNamespace returns the scope with the namespace in which objects without one are. Kinds
// without namespaces ignore it.
func (a *api) withNamespace(ctx context.Context, scope web.Scope) (web.Scope, error) {
	if scope.Location != "" {
		return scope, nil
	}
	row, err := a.account(ctx, scope.Account)
	scope.Location = row.Properties.NamespaceOrDefault("")
	return scope, err
}

// listOptions selects objects of a kind, and the parts of them to read.
type listOptions struct {
	application string // used by the store only; the cluster has no applications
	selector    string // label selector
	bodies      bool
}

// listObjects iterates over the objects of a kind. Errors are those of findObject. Each page
// is freed before the next one is read, so callers must not keep rows, except those of the cluster, which held pays for.
func (a *api) listObjects(ctx context.Context, scope web.Scope, held *web.Memory, kind string,
	opts listOptions) iter.Seq2[read.Row, error] {
	return func(yield func(read.Row, error) bool) {
		if err := a.forEachPage(ctx, scope, held, kind, opts, func(rows []read.Row) bool { return yieldRows(rows, yield) }); err != nil {
			yield(read.Row{}, err)
		}
	}
}

func yieldRows(rows []read.Row, yield func(read.Row, error) bool) bool {
	for i, row := range rows {
		rows[i] = read.Row{}
		if !yield(row, nil) {
			return false
		}
	}
	return true
}

// forEachPage calls do with each page until do returns false.
func (a *api) forEachPage(ctx context.Context, scope web.Scope, held *web.Memory, kind string, opts listOptions,
	do func([]read.Row) bool) error {
	scope, err := a.withNamespace(ctx, scope)
	if err != nil {
		return err
	}
	feed, err := a.findFeed(ctx, scope.Account, kind, scope.Location)
	if a.shouldReadLive(err) {
		objects, err := a.listLive(ctx, scope, kind, opts.selector)
		if vedette.KindOf(err) == vedette.NotFound { // the kind is unknown, not the object
			err = &readError{message: err.Error(), unknownKind: true}
		}
		if err != nil {
			return asReadError(ctx, err)
		}
		rows, err := newRows(ctx, scope.Account, held, objects)
		if vedette.KindOf(err) == vedette.Unavailable {
			return err // there is no memory, which the cluster has nothing to do with
		}
		do(rows)
		return asReadError(ctx, err)
	}
	if err != nil {
		return err
	}
	query := read.Query{Accounts: []vedette.AccountName{scope.Account}, Kinds: []vedette.Kind{feed.Feed.Kind}, Namespace: scope.Location,
		Application: opts.application, Selector: opts.selector, Bodies: opts.bodies, SkipTotal: true, Bytes: pageBytes}
	if !feed.Resource.Namespaced {
		query.Namespace = ""
	}
	for {
		next, err := a.readPage(ctx, scope, query, do)
		query.After = next
		if err != nil || next == "" {
			return err
		}
	}
}

// pageBytes bounds the size of a page, both compressed and uncompressed.
const pageBytes = 512 << 10

// readPage calls do with one page, and returns the cursor of the next page if do wants it.
func (a *api) readPage(ctx context.Context, scope web.Scope, query read.Query, do func([]read.Row) bool) (next string, err error) {
	release, err := a.ReadLimiter.Acquire(ctx, scope.LimitKey, 2*pageBytes)
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

// shouldReadLive reports whether the store cannot answer but the cluster may.
func (a *api) shouldReadLive(err error) bool {
	var readErr *readError
	return a.Dispatch != nil && errors.As(err, &readErr)
}

// asReadError converts an error of a cluster or an agent to a readError. NotFound errors stay
// as they are. If ctx is canceled, the error is context.Canceled.
func asReadError(ctx context.Context, err error) error {
	var readErr *readError
	switch {
	case err == nil || vedette.KindOf(err) == vedette.NotFound:
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	case errors.As(err, &readErr):
		return err
	}
	return &readError{message: err.Error()}
}

// findFeed returns the live feed that reports objects of a kind and namespace.
func (a *api) findFeed(ctx context.Context, account vedette.AccountName, kind, location string) (read.FeedStatus, error) {
	feeds, err := a.Store.Feeds(ctx, account)
	if err != nil {
		return read.FeedStatus{}, err
	}
	if len(feeds) == 0 {
		if _, err := a.account(ctx, account); err != nil {
			return read.FeedStatus{}, err
		}
		return read.FeedStatus{}, &readError{message: "the account's agent has not reported yet which kinds it caches"}
	}
	feed, err := selectFeed(feeds, kind, location)
	switch {
	case err != nil:
		return feed, err
	case !a.Connected(account):
		return feed, errNoAgent
	case feed.State != vedette.FeedLive:
		return feed, &readError{message: "the agent does not watch this kind now: " + string(feed.State) + " " + feed.Message}
	}
	return feed, nil
}

// readError means that a manifest may exist but cannot be read. It is never answered with status
// 404, after which Orca assumes that the manifest is deleted.
type readError struct {
	message     string
	unknownKind bool // the cluster answered, and serves no such kind
	// unavailable means that nobody answered: no agent, or not the cluster. The status is 503, after which all
	// of Spinnaker's services try again. Otherwise it is 500, as in Clouddriver.
	unavailable bool
}

func (e *readError) Error() string { return e.message }

// As is called by errors.As. It says how the error is answered.
func (e *readError) As(target any) bool {
	response, ok := target.(**web.Error)
	switch {
	case !ok:
	case e.unavailable:
		*response = &web.Error{Status: http.StatusServiceUnavailable, Exception: web.IntegrationException, Message: e.message}
	default:
		*response = &web.Error{Status: http.StatusInternalServerError, Exception: "com.netflix.spinnaker.kork.exceptions.SpinnakerException",
			Message: e.message}
	}
	return ok
}

// forManifest adds Clouddriver's words to an error about a manifest.
func (e *readError) forManifest(account vedette.AccountName, location, name string) error {
	return e.withPrefix(fmt.Sprintf("Failed to read manifest: (account: %s, location: %s, name: %s): ", account, location, name))
}

// withPrefix adds what could not be read before the message.
func (e *readError) withPrefix(text string) *readError {
	prefixed := *e
	prefixed.message = text + e.message
	return &prefixed
}

func selectFeed(feeds []read.FeedStatus, kind, location string) (read.FeedStatus, error) {
	var resources []vedette.Resource
	for _, f := range feeds {
		resources = append(resources, f.Resource)
	}
	resource, err := tables.FindResource(resources, kind)
	if err != nil {
		return read.FeedStatus{}, &readError{message: err.Error()}
	}
	for _, namespace := range []string{location, ""} {
		index := slices.IndexFunc(feeds, func(f read.FeedStatus) bool {
			return f.Feed == vedette.Feed{Kind: resource.Kind, Namespace: namespace}
		})
		if index >= 0 {
			return feeds[index], nil
		}
	}
	if slices.ContainsFunc(feeds, func(f read.FeedStatus) bool { return f.Feed.Kind == resource.Kind }) {
		return read.FeedStatus{}, &readError{message: "the account is restricted to other namespaces"}
	}
	return read.FeedStatus{}, &readError{message: "the account's agent does not cache this kind"}
}
