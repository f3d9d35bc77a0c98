package clouddriver

import (
	"encoding/json"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store"
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
	Warnings  []string            `json:"warnings"` // always empty: Orca expects strings where Clouddriver writes objects
	Metrics   []containerMetrics  `json:"metrics"`
}

// getManifest mirrors ManifestController.getForAccountAndName and
// getForAccountLocationAndName. The application is checked after the manifest was read,
// because only the manifest names it.
func (a *api) getManifest(w http.ResponseWriter, r *http.Request, p pathParams) error {
	scope := newRequestScope(r, p)
	if err := a.Authorizer.CheckAccount(r.Context(), scope.caller, scope.account, authorize.Read); err != nil {
		return err
	}
	// The memory is held while the cluster is asked for events.
	object, release, err := readlimit.Read(r.Context(), a.ReadLimiter, scope.limitKey, func() (shownObject, int64, error) {
		object, err := a.readShownManifest(r, scope, p["name"])
		if err != nil {
			return object, 0, err
		}
		size, err := objectBytes(&object.Row)
		return object, size, err
	})
	if err != nil {
		return err
	}
	defer release()
	row := object.Row
	if err := a.Authorizer.CheckApplication(r.Context(), scope.caller, row.Moniker.App, authorize.Read); err != nil {
		return err
	}
	accountRow, err := a.account(r.Context(), scope.account)
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
	case singleParam(r.URL.Query(), "includeEvents") != "false":
		a.addEventsAndMetrics(r.Context(), scope, &row, accountRow.Properties.ShowsMetrics(), &view)
	}
	return writeJSON(w, r, view)
}

// objectCopies is how often an object's bytes are in memory during a request: as read, with
// Clouddriver's numbers, and in the response, whose buffer grows by doubling.
const objectCopies = 5

func newManifestView(row *store.Row, readiness bool) (manifestView, error) {
	evaluated, err := evaluate(row.Kind, row.Body, readiness)
	if err != nil {
		return manifestView{}, err
	}
	var e encoder
	e.monikerObject(row.Moniker)
	artifacts, err := artifactsOf(row.Kind, row.Body)
	return manifestView{Account: row.Account, Name: kindName(row.Kind) + " " + row.Name, Location: row.Namespace, Moniker: e.b,
		Manifest: asManifest(row.Body), Status: evaluated, Artifacts: artifacts,
		Events: []json.RawMessage{}, Warnings: []string{}, Metrics: []containerMetrics{}}, err
}
