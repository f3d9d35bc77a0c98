package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// mergeDatabases turns the rows of a part, one for each database and request, into one for each
// request, so that databases are side by side.
func (t *table) mergeDatabases(part string, databases []databaseCase) {
	var others []row
	var order []string
	merged := map[string]*mergedRow{}
	for _, r := range t.rows {
		name, request, found := strings.Cut(r.measure, ", ")
		if r.part != part || !found {
			others = append(others, r)
			continue
		}
		if merged[request] == nil {
			order = append(order, request)
			merged[request] = &mergedRow{target: r.target, rows: map[string]row{}}
		}
		merged[request].rows[name] = r
	}
	t.rows = others
	for _, request := range order {
		t.rows = append(t.rows, merged[request].row(part, request, databases))
	}
}

// mergedRow are the rows of a request, by database.
type mergedRow struct {
	target string
	rows   map[string]row
}

func (m *mergedRow) row(part, request string, databases []databaseCase) row {
	r := row{part: part, measure: request, target: m.target, values: map[string]float64{}}
	worst := 0.0
	for _, d := range databases {
		for name, value := range m.rows[d.name].values {
			r.values[d.name+" "+name] = value
		}
		percent, _, _ := strings.Cut(m.rows[d.name].ratio, " ")
		if p, err := strconv.ParseFloat(percent, 64); err == nil {
			worst = math.Max(worst, p)
		}
	}
	if worst > 0 {
		r.ratio = percentOfTarget(worst, 100)
	}
	main := "changed"
	if m.all(databases, "changedP50Ms") == "" {
		main = "unchanged"
	}
	r.result = fmt.Sprintf("p50 %s ms, p99 %s ms", m.all(databases, main+"P50Ms"), m.all(databases, main+"P99Ms"))
	remarks := []string{formatBytes(int64(m.largest("bytes")))}
	if main == "changed" {
		remarks = append(remarks, "unchanged p50 "+m.all(databases, "unchangedP50Ms"))
	}
	if times := m.all(databases, "notModifiedP50Ms"); times != "" {
		remarks = append(remarks, "with ETag "+times)
	}
	r.remark = strings.Join(remarks, "; ")
	return r
}

// all returns a value of each database, or "" if no database has it.
func (m *mergedRow) all(databases []databaseCase, name string) string {
	var texts []string
	found := false
	for _, d := range databases {
		value, ok := m.rows[d.name].values[name]
		if !ok {
			texts = append(texts, "-")
			continue
		}
		found = true
		texts = append(texts, fmt.Sprintf("%.1f", value))
	}
	if !found {
		return ""
	}
	return strings.Join(texts, " / ")
}

func (m *mergedRow) largest(name string) float64 {
	most := 0.0
	for _, r := range m.rows {
		most = math.Max(most, r.values[name])
	}
	return most
}
