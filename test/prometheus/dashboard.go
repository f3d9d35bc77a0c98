package prometheus

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// errQuery means that Prometheus does not accept a query.
var errQuery = errors.New("the query is invalid")

// Panel is a panel of a dashboard.
type Panel struct {
	Dashboard, Title string
	Queries          []string // without Grafana's variables
}

// dashboard is the part of a dashboard that has queries.
type dashboard struct {
	Title  string
	Panels []struct {
		Type    string
		Title   string
		Targets []struct{ Expr string }
	}
}

// ReadDashboard returns the panels of a dashboard of Grafana, as a user sees them who has selected a
// pod.
func ReadDashboard(file, pod string) ([]Panel, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("read dashboard %s: %w", file, err)
	}
	var panels []Panel
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		panel := Panel{Dashboard: d.Title, Title: p.Title}
		for _, t := range p.Targets {
			panel.Queries = append(panel.Queries, replaceVariables(t.Expr, pod))
		}
		panels = append(panels, panel)
	}
	return panels, nil
}

// replaceVariables does what Grafana does if a user selects all namespaces and one pod, with an
// interval that fits a scrape every second.
func replaceVariables(query, pod string) string {
	return strings.NewReplacer("$namespace", ".*", "$pod", pod, "$__rate_interval", "10s", "$interval", "1m").Replace(query)
}
