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

// manifestView is the answer of GET /manifests/...
type manifestView struct {
	Account   vedette.AccountName `json:"account"`
	Name      string              `json:"name"` // "replicaSet web-v003"
	Location  string              `json:"location"`
	Moniker   vedette.Moniker     `json:"moniker"`
	Manifest  json.RawMessage     `json:"manifest"`
	Status    manifestStatus      `json:"status"`
	Artifacts []manifest.Artifact `json:"artifacts"`
	Events    []json.RawMessage   `json:"events"`
	Warnings  []string            `json:"warnings"` // Orca reads texts where Clouddriver would write objects: always none
	Metrics   []containerMetrics  `json:"metrics"`
}

// getManifest mirrors ManifestController.getForAccountAndName and
// getForAccountLocationAndName. Whether the application may be read shows only
// once the manifest is there.
func (a *api) getManifest(w http.ResponseWriter, r *http.Request, p pathParams) error {
	scope := newRequestScope(r, p)
	if err := a.Authorizer.CheckAccount(r.Context(), scope.caller, scope.account, authorize.Read); err != nil {
		return err
	}
	// What is made of an object stays while the cluster is asked about it.
	row, release, err := readlimit.Read(r.Context(), a.ReadLimiter, scope.limitKey, func() (store.Row, int64, error) {
		row, err := a.readManifest(r.Context(), scope, p["name"])
		return row, objectCopies * int64(len(row.Body)), err
	})
	if err != nil {
		return err
	}
	defer release()
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
	if r.URL.Query().Get("includeEvents") != "false" {
		a.addEventsAndMetrics(r.Context(), scope, &row, accountRow.Properties.ShowsMetrics(), &view)
	}
	return writeJSON(w, r, view)
}

// objectCopies is how often an object's bytes are there while it is answered: as it was
// read, as Clouddriver writes numbers, and in the answer, which grows by doubling.
const objectCopies = 5

func newManifestView(row *store.Row, readiness bool) (manifestView, error) {
	evaluated, err := evaluate(row.Kind, row.Body, readiness)
	if err != nil {
		return manifestView{}, err
	}
	artifacts, err := artifactsOf(row.Kind, row.Body)
	return manifestView{Account: row.Account, Name: kindName(row.Kind) + " " + row.Name, Location: row.Namespace, Moniker: row.Moniker,
		Manifest: asGson(row.Body), Status: evaluated, Artifacts: artifacts,
		Events: []json.RawMessage{}, Warnings: []string{}, Metrics: []containerMetrics{}}, err
}
