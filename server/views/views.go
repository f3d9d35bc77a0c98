package views

import (
	"encoding/json"
	"time"

	"github.com/vedette-io/vedette"
)

// Column heads a column of a table.
type Column struct {
	Name string
	Wide bool // shown only where the reader has asked for more (-o wide)
}

// View is how one kind is shown in lists, after its account, namespace and name.
type View struct {
	Columns []Column
	cells   func(o *vedette.Object, now time.Time) []string
}

// Cells returns one text for each column. A summary that can't be read, or that
// an older agent lifted by other rules, gives the texts of missing values.
func (v View) Cells(o *vedette.Object, now time.Time) []string { return v.cells(o, now) }

// kindView is a kind with all that this package knows of it.
type kindView struct {
	resource vedette.Resource
	fields   []vedette.ProjectionField
	view     View
}

// ForKind returns the view of a kind; for kinds that have none of their own, the age.
func ForKind(kind vedette.Kind) View {
	for _, k := range kinds() {
		if k.resource.Kind == kind {
			return k.view
		}
	}
	return defaultKindView().view
}

// Projections returns what to ask agents for: a lift per kind that has a view, and
// the one for all others.
func Projections() []vedette.Projection {
	lifts := []vedette.Projection{{Fields: defaultKindView().fields}}
	for _, k := range kinds() {
		lifts = append(lifts, vedette.Projection{Kind: k.resource.Kind, Fields: k.fields})
	}
	return lifts
}

// KnownResources returns the kinds that have a view, as Kubernetes serves them. They can
// be asked for by name even before any agent has reported them.
func KnownResources() []vedette.Resource {
	var out []vedette.Resource
	for _, k := range kinds() {
		out = append(out, k.resource)
	}
	return out
}

func kinds() []kindView {
	return []kindView{
		pod(), deployment(), replicaSet(), statefulSet(), daemonSet(), job(), cronJob(),
		service(), ingress(), networkPolicy(), configMap(), persistentVolumeClaim(), persistentVolume(), storageClass(),
		node(), namespace(), customResourceDefinition(), autoscaler(), disruptionBudget(), secret(),
	}
}

// defaultKindView is the view of kinds that have none of their own. What "Ready" means is
// the one thing that most of them agree on.
func defaultKindView() kindView {
	type summary struct {
		conditions
	}
	return kindView{
		fields: conditionFields(),
		view: newView(columns("AGE", "READY*"), func(s *summary, o *vedette.Object, now time.Time) []string {
			return []string{ageSince(o.Created, now), orDefault(s.status("Ready"), none)}
		}),
	}
}

// newView makes a view of a function on a decoded summary.
func newView[S any](cols []Column, cells func(s *S, o *vedette.Object, now time.Time) []string) View {
	return View{Columns: cols, cells: func(o *vedette.Object, now time.Time) []string {
		s := new(S)
		// What can't be decoded stays zero and is shown as missing: a list of
		// thousands must not fail for one odd object.
		_ = json.Unmarshal(o.Summary, s)
		return cells(s, o, now)
	}}
}

// columns makes columns of names; a name that ends in "*" is a wide one.
func columns(names ...string) []Column {
	out := make([]Column, len(names))
	for i, name := range names {
		last := len(name) - 1
		if out[i].Wide = name[last] == '*'; out[i].Wide {
			name = name[:last]
		}
		out[i].Name = name
	}
	return out
}

// fields makes lift fields of pairs of name and path.
func fields(pairs ...string) []vedette.ProjectionField {
	var out []vedette.ProjectionField
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, vedette.ProjectionField{Name: pairs[i], Path: pairs[i+1]})
	}
	return out
}

const none = "<none>"

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// elementAt returns an element of a list whose absent elements may be missing too.
func elementAt[T any](list []T, i int) T {
	var zero T
	if i < 0 || i >= len(list) {
		return zero
	}
	return list[i]
}

// conditions are an object's status.conditions, as parallel lists.
type conditions struct {
	Types    []string `json:"conditionTypes"`
	Statuses []string `json:"conditionStatuses"`
}

func conditionFields() []vedette.ProjectionField {
	return fields("conditionTypes", "status.conditions.*.type", "conditionStatuses", "status.conditions.*.status")
}

// status returns the status of a condition, or "" where there is none.
func (c conditions) status(name string) string {
	for i, t := range c.Types {
		if t == name {
			return elementAt(c.Statuses, i)
		}
	}
	return ""
}

func (c conditions) isTrue(name string) bool { return c.status(name) == "True" }
