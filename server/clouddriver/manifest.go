package clouddriver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/views"
)

// manifestView is the answer of GET /manifests/...
type manifestView struct {
	Account   vedette.AccountName `json:"account"`
	Name      string              `json:"name"` // "replicaSet web-v003"
	Location  string              `json:"location"`
	Moniker   vedette.Moniker     `json:"moniker"`
	Manifest  json.RawMessage     `json:"manifest"`
	Status    status              `json:"status"`
	Artifacts []artifact          `json:"artifacts"`
	Events    []json.RawMessage   `json:"events"`   // none are kept, so none are shown
	Warnings  []string            `json:"warnings"` // Orca reads texts where Clouddriver would write objects: always none
	Metrics   []json.RawMessage   `json:"metrics"`
}

// getManifest mirrors ManifestController.getForAccountAndName and
// getForAccountLocationAndName. Whether the application may be read shows only
// once the manifest is there.
func (a *api) getManifest(w http.ResponseWriter, r *http.Request, p parts) error {
	account, location := vedette.AccountName(p["account"]), p["location"]
	if location == "_" {
		location = ""
	}
	caller := authorize.CallerOf(r)
	if err := a.Authority.Account(r.Context(), caller, account, authorize.Read); err != nil {
		return err
	}
	row, err := a.read(r.Context(), account, location, p["name"])
	if err != nil {
		return err
	}
	if err := a.Authority.Application(r.Context(), caller, row.Moniker.App, authorize.Read); err != nil {
		return err
	}
	owner, err := a.account(r.Context(), account)
	if err != nil {
		return err
	}
	view, err := viewOf(&row, owner.Properties.CheckReadiness)
	if err != nil {
		return err
	}
	return writeJSON(w, r, view)
}

func viewOf(row *store.Row, readiness bool) (manifestView, error) {
	judged, err := judge(row.Kind, row.Body, readiness)
	if err != nil {
		return manifestView{}, err
	}
	artifacts, err := artifactsOf(row.Kind, row.Body)
	return manifestView{Account: row.Account, Name: kindName(row.Kind) + " " + row.Name, Location: row.Namespace, Moniker: row.Moniker,
		Manifest: asGson(row.Body), Status: judged, Artifacts: artifacts,
		Events: []json.RawMessage{}, Warnings: []string{}, Metrics: []json.RawMessage{}}, err
}

// read finds the object that a full name means. It answers only out of a feed
// that is complete: Clouddriver asks the cluster itself, and what Orca waits for
// (that a deployment is stable, that a manifest is gone) must not be told of a
// state that was before. A failed read is tried again.
func (a *api) read(ctx context.Context, account vedette.AccountName, location, name string) (store.Row, error) {
	kind, object, err := splitName(name)
	if err != nil {
		return store.Row{}, err
	}
	missing := vedette.Errorf(vedette.NotFound, "Manifest (account: %s, location: %s, name: %s) not found", account, location, name)
	feed, err := a.feed(ctx, account, kind, location)
	var failed *readFailure
	switch {
	case errors.As(err, &failed):
		return store.Row{}, failed.of(account, location, name)
	case vedette.KindOf(err) == vedette.NotFound:
		return store.Row{}, missing
	case err != nil:
		return store.Row{}, err
	}
	key := vedette.Key{Kind: feed.Feed.Kind, Namespace: location, Name: object}
	if !feed.Resource.Namespaced {
		key.Namespace = ""
	}
	row, err := a.Store.Object(ctx, account, key)
	if vedette.KindOf(err) == vedette.NotFound {
		return row, missing
	}
	return row, err
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
