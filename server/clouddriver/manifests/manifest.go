package manifests

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/jsonwriter"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/read"
)

// manifestView is the response of GET /manifests/...
type manifestView struct {
	Account   vedette.AccountName `json:"account"`
	Name      string              `json:"name"` // "replicaSet web-v003"
	Location  string              `json:"location"`
	Moniker   json.RawMessage     `json:"moniker"`
	Manifest  json.RawMessage     `json:"manifest"`
	Status    manifestStatus      `json:"status"`
	Artifacts []manifest.Artifact `json:"artifacts"`
	Events    []json.RawMessage   `json:"events"`
	Warnings  []string            `json:"warnings"` // strings, as Orca expects, where Clouddriver writes objects
	Metrics   []containerMetrics  `json:"metrics"`
}

// getManifest mirrors ManifestController.getForAccountAndName and
// getForAccountLocationAndName. The application is checked after the manifest was read,
// because only the manifest names it.
func (a *api) getManifest(w http.ResponseWriter, r *http.Request, p web.Params) error {
	scope := web.NewScope(r, p)
	if err := a.Authorizer.CheckAccount(r.Context(), scope.Caller, scope.Account, authorize.Read); err != nil {
		return err
	}
	// The memory is held while the cluster is asked for events.
	object, release, err := readlimit.Read(r.Context(), a.ReadLimiter, scope.LimitKey, func() (shownObject, int64, error) {
		object, err := a.readShownManifest(r, scope, p["name"])
		if err != nil {
			return object, 0, err
		}
		size, err := web.ObjectBytes(&object.Row)
		return object, size, err
	})
	if err != nil {
		return err
	}
	defer release()
	row := object.Row
	if err := a.Authorizer.CheckApplication(r.Context(), scope.Caller, row.Moniker.App, authorize.Read); err != nil {
		return err
	}
	accountRow, err := a.account(r.Context(), scope.Account)
	if err != nil {
		return err
	}
	view, err := newManifestView(&row, accountRow.Properties.CheckReadiness)
	if err != nil {
		return err
	}
	switch {
	case object.isStale: // no agent could be asked for events either
		object.setHeaders(w.Header())
	case web.SingleParam(r.URL.Query(), "includeEvents") != "false":
		a.addEventsAndMetrics(r.Context(), scope, &row, accountRow.Properties.ShowsMetrics(), &view)
	}
	return rest.WriteJSON(w, r, view)
}

func newManifestView(row *read.Row, readiness bool) (manifestView, error) {
	evaluated, err := evaluate(row.Kind, row.Body, readiness)
	if err != nil {
		return manifestView{}, err
	}
	var moniker jsonwriter.Writer
	web.WriteMoniker(&moniker, row.Moniker)
	artifacts, err := artifactsOf(row.Kind, row.Body)
	return manifestView{Account: row.Account, Name: manifest.KindName(row.Kind) + " " + row.Name, Location: row.Namespace, Moniker: moniker.B,
		Manifest: web.AsManifest(row.Body), Status: evaluated, Artifacts: artifacts,
		Events: []json.RawMessage{}, Warnings: []string{}, Metrics: []containerMetrics{}}, err
}

func artifactsOf(kind vedette.Kind, body []byte) ([]manifest.Artifact, error) {
	var m manifest.Manifest
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("find the artifacts of a %s: %w", kind, err)
	}
	return manifest.FindArtifacts(kind, m), nil
}
