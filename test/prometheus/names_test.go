package prometheus_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	agentmetrics "github.com/vedette-io/vedette/agent/metrics"
	"github.com/vedette-io/vedette/internal/metricset"
	servermetrics "github.com/vedette-io/vedette/server/metrics"
	"github.com/vedette-io/vedette/test/prometheus"
)

const alertsFile = "../../deploy/prometheus/alerts.yml"

// dashboards are the dashboards, by the pod that must have data for each panel.
var dashboards = map[string]string{
	"../../deploy/grafana/vedette-agent.json":  "agent-0",
	"../../deploy/grafana/vedette-server.json": "server-0",
	"testdata/predecessor.json":                "agent-0",
}

// ourNames are names of our metrics in a query.
var ourNames = regexp.MustCompile(`\b(vedette_|kubesvc_)\w+`)

// TestNamesExist checks that dashboards and alerts use metrics that the programs have, and that each
// metric of ours is in a dashboard or an alert, except those that are off by default. It needs no Prometheus.
func TestNamesExist(t *testing.T) {
	known, optional := map[string]string{}, map[string]bool{}
	for _, d := range append(agentmetrics.New("").Definitions(), servermetrics.New("").Definitions()...) {
		for _, name := range namesOf(d) {
			known[name] = d.Name
		}
		optional[d.Name] = strings.Contains(d.Help, "prometheus.maxAccounts")
	}
	used := map[string]bool{}
	for where, text := range readQueries(t) {
		for _, name := range ourNames.FindAllString(text, -1) {
			if known[name] == "" {
				t.Errorf("%s: there is no metric %s", where, name)
			}
			used[known[name]] = true
		}
	}
	for _, name := range known {
		if !used[name] && !optional[name] && !strings.HasSuffix(name, "_build_info") && !isTwin(name) {
			t.Errorf("%s is in no dashboard and in no alert", name)
		}
	}
}

// isTwin reports whether a metric says the same as one that is in a dashboard.
func isTwin(name string) bool {
	return name == "vedette_agent_connections_total" || name == "vedette_agent_snapshots_total" ||
		name == "vedette_agent_outbox_unacknowledged_bytes"
}

// namesOf returns the names of a metric's series.
func namesOf(d metricset.Definition) []string {
	if d.Type == "histogram" {
		return []string{d.Name + "_bucket", d.Name + "_sum", d.Name + "_count"}
	}
	return []string{d.Name}
}

// readQueries returns all queries, by where they are.
func readQueries(t *testing.T) map[string]string {
	queries := map[string]string{}
	for file, pod := range dashboards {
		panels, err := prometheus.ReadDashboard(file, pod)
		if err != nil || len(panels) < 10 {
			t.Fatalf("%s: got %d panels, %v", file, len(panels), err)
		}
		for _, p := range panels {
			if len(p.Queries) == 0 {
				t.Errorf("%s: panel %s has no query", p.Dashboard, p.Title)
			}
			queries[p.Dashboard+": "+p.Title] += strings.Join(p.Queries, "\n")
		}
	}
	alerts, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	queries["alerts"] = string(alerts)
	return queries
}

// TestEveryAlertIsTested checks that the file of promtool's tests has a test for each alert.
func TestEveryAlertIsTested(t *testing.T) {
	rules, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(strings.Replace(alertsFile, ".yml", "_test.yml", 1))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	for _, match := range found {
		if !strings.Contains(string(tests), "alertname: "+match[1]+"\n") {
			t.Errorf("alert %s has no test", match[1])
		}
	}
	if len(found) < 20 {
		t.Errorf("got %d alerts, want at least 20", len(found))
	}
}
