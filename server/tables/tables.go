package tables

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/vedette-io/vedette"
)

// Column is a column of a table.
type Column struct {
	Name string
	Wide bool // shown only on request (-o wide)
}

// Table is how lists show a kind. Columns for account, namespace and name come before it.
type Table struct {
	Columns []Column
	cells   func(o *vedette.Object, now time.Time) []string
}

// Cells returns one text per column. Values that are missing in the summary are shown as
// missing, also if the summary is invalid or from an older agent.
func (v Table) Cells(o *vedette.Object, now time.Time) []string { return v.cells(o, now) }

type kindTable struct {
	resource vedette.Resource
	fields   []vedette.ProjectionField
	table    Table
}

// ForKind returns the table of a kind. Kinds without a table of their own have the default table.
func ForKind(kind vedette.Kind) Table {
	for _, k := range kinds() {
		if k.resource.Kind == kind {
			return k.table
		}
	}
	return defaultKindTable().table
}

// Projections returns the projections that agents need: one per kind with a table, and the
// default.
func Projections() []vedette.Projection {
	lifts := []vedette.Projection{{Fields: defaultKindTable().fields}}
	for _, k := range kinds() {
		lifts = append(lifts, vedette.Projection{Kind: k.resource.Kind, Fields: k.fields})
	}
	return lifts
}

// KnownResources returns the kinds with a table, as Kubernetes serves them. Users can name them
// even before an agent reports them.
func KnownResources() []vedette.Resource {
	var out []vedette.Resource
	for _, k := range kinds() {
		out = append(out, k.resource)
	}
	return out
}

func kinds() []kindTable {
	return []kindTable{
		pod(), deployment(), replicaSet(), statefulSet(), daemonSet(), job(), cronJob(),
		service(), ingress(), networkPolicy(), configMap(), persistentVolumeClaim(), persistentVolume(), storageClass(),
		node(), namespace(), customResourceDefinition(), autoscaler(), disruptionBudget(), secret(),
	}
}

// defaultKindTable is the table of all other kinds. It shows the condition Ready, because most
// custom kinds have it.
func defaultKindTable() kindTable {
	type summary struct {
		conditions
	}
	return kindTable{
		fields: conditionFields(),
		table: newTable(columns("AGE", "READY*"), func(s *summary, o *vedette.Object, now time.Time) []string {
			return []string{ageSince(o.Created, now), cmp.Or(s.status("Ready"), none)}
		}),
	}
}

// newTable returns a table whose cells are computed from a decoded summary.
func newTable[S any](cols []Column, cells func(s *S, o *vedette.Object, now time.Time) []string) Table {
	return Table{Columns: cols, cells: func(o *vedette.Object, now time.Time) []string {
		s := new(S)
		// Values that cannot be decoded stay zero and are shown as missing, because one
		// invalid object must not break a list of thousands.
		_ = json.Unmarshal(o.Summary, s)
		return cells(s, o, now)
	}}
}

// columns returns the columns with the given names. A name that ends in "*" is a wide column.
func columns(names ...string) []Column {
	out := make([]Column, len(names))
	for i, name := range names {
		last := len(name) - 1
		out[i].Wide = name[last] == '*'
		if out[i].Wide {
			name = name[:last]
		}
		out[i].Name = name
	}
	return out
}

// fields returns projection fields from pairs of name and path. A name that begins with "_" is for
// package attributes only: the store does not keep the field in the summary.
func fields(pairs ...string) []vedette.ProjectionField {
	var out []vedette.ProjectionField
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, vedette.ProjectionField{Name: pairs[i], Path: pairs[i+1]})
	}
	return out
}

const none = "<none>"

// elementAt returns an element of a list, or the zero value beyond its end.
func elementAt[T any](list []T, i int) T {
	var zero T
	if i < 0 || i >= len(list) {
		return zero
	}
	return list[i]
}

// conditions are the status.conditions of an object, as parallel lists.
type conditions struct {
	Types    []string `json:"conditionTypes"`
	Statuses []string `json:"conditionStatuses"`
}

func conditionFields() []vedette.ProjectionField {
	return fields("conditionTypes", "status.conditions.*.type", "conditionStatuses", "status.conditions.*.status")
}

// status returns the status of a condition, or "" if it is missing.
func (c conditions) status(name string) string {
	for i, t := range c.Types {
		if t == name {
			return elementAt(c.Statuses, i)
		}
	}
	return ""
}

func (c conditions) isTrue(name string) bool { return c.status(name) == "True" }
