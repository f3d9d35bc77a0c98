package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/tables"
)

// tableView is a page of objects of one kind as a table, with the columns that kubectl shows
// after the name.
type tableView struct {
	Kind       string       `json:"kind"`
	Namespaced bool         `json:"namespaced"`
	Columns    []columnView `json:"columns"`
	Rows       []rowView    `json:"rows"`
	Total      int64        `json:"total"`
	Cursor     string       `json:"cursor,omitempty"`
}

type columnView struct {
	Name string `json:"name"`
	Wide bool   `json:"wide"` // shown only if there is space
}

type rowView struct {
	Account         vedette.AccountName `json:"account"`
	Namespace       string              `json:"namespace,omitempty"`
	Name            string              `json:"name"`
	UID             string              `json:"uid"`
	ResourceVersion string              `json:"resourceVersion"`
	Created         timestamp           `json:"created"`
	Cells           []string            `json:"cells"`
	Labels          map[string]string   `json:"labels,omitempty"`
	Manifest        json.RawMessage     `json:"manifest,omitempty"`
}

func (a *api) listTable(w http.ResponseWriter, r *http.Request, f filter, include string) error {
	page, fresh, err := a.readPage(r, &f)
	if err != nil {
		return err
	}
	resource, err := f.singleKind()
	if err != nil {
		return err
	}
	view := tables.ForKind(resource.Kind)
	t := tableView{Kind: resource.Kind.String(), Namespaced: resource.Namespaced, Columns: newColumnViews(view),
		Rows:  make([]rowView, len(page.Items)),
		Total: page.Total, Cursor: page.Next}
	now := time.Now()
	for i := range page.Items {
		t.Rows[i] = newRowView(&page.Items[i], view, now, include)
	}
	body, err := rest.Encode(t)
	if err != nil {
		return err
	}
	return writeWithFreshness(w, r, fresh, body)
}

// singleKind returns the one kind of the filter. It fails for several kinds, because their
// columns differ.
func (f filter) singleKind() (vedette.Resource, error) {
	if len(f.resources) != 1 {
		return vedette.Resource{}, vedette.Errorf(vedette.Invalid,
			"a table shows one kind, but the request selects %d; request a table for each kind", len(f.resources))
	}
	return f.resources[0], nil
}

func newColumnViews(v tables.Table) []columnView {
	out := make([]columnView, len(v.Columns))
	for i, c := range v.Columns {
		out[i] = columnView(c)
	}
	return out
}

// newRowView returns a row with what include names besides its cells.
func newRowView(r *read.Row, v tables.Table, now time.Time, include string) rowView {
	row := rowView{Account: r.Account, Namespace: r.Namespace, Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion,
		Created: creationTime(r.Created), Cells: v.Cells(&r.Object, now)}
	switch {
	case include == includeLabels:
		row.Labels = r.Labels
	case include == includeBody && json.Valid(r.Body): // as in appendObject: one agent must not break responses about others
		row.Manifest = r.Body
	}
	return row
}
