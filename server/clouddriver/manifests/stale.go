package manifests

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/store/read"
)

// shownObject is an object for a response that shows it.
type shownObject struct {
	read.Row
	isStale   bool      // nobody could be asked whether it has changed since the watermark
	watermark time.Time // zero if it is unknown, or the object is not stale
}

// readShownManifest is readManifest for a response that shows the object. If nobody answers, it returns what the store
// has. A stage gets the error instead: it waits until a new generation is stable, and of this generation the
// store may know nothing.
func (a *api) readShownManifest(r *http.Request, scope web.Scope, name string) (shownObject, error) {
	row, err := a.readManifest(r.Context(), scope, name)
	var readErr *readError
	if !errors.As(err, &readErr) || !readErr.unavailable || web.IsFromStage(r) {
		return shownObject{Row: row}, err
	}
	stale, storeErr := a.findStale(r.Context(), scope, name)
	switch {
	case storeErr == nil:
		return stale, nil
	case errors.As(storeErr, new(*readError)), vedette.KindOf(storeErr) == vedette.NotFound: // the cluster may have it all the same
		return shownObject{}, err
	}
	return shownObject{}, storeErr
}

// findStale returns an object from a feed that may be out of date. Errors are those of findObject.
func (a *api) findStale(ctx context.Context, scope web.Scope, name string) (shownObject, error) {
	kind, object, err := manifest.SplitName(name)
	if err != nil {
		return shownObject{}, err
	}
	scope, err = a.withNamespace(ctx, scope)
	if err != nil {
		return shownObject{}, err
	}
	feeds, err := a.Store.Feeds(ctx, scope.Account)
	if err != nil {
		return shownObject{}, err
	}
	feed, err := selectFeed(feeds, kind, scope.Location)
	if err != nil {
		return shownObject{}, err
	}
	row, err := a.storedObject(ctx, scope, feed, object)
	return shownObject{Row: row, isStale: true, watermark: feed.LastSeen}, err
}

// setHeaders sets the headers that tell clients how far a stale object may be behind. The first two have the names that they have in
// Vedette's own API.
func (o *shownObject) setHeaders(h http.Header) {
	h.Set("Vedette-Stale", "true")
	if o.watermark.IsZero() {
		return
	}
	h.Set("Vedette-Watermark", o.watermark.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	h.Set("Age", strconv.Itoa(max(0, int(time.Since(o.watermark).Seconds()))))
}
