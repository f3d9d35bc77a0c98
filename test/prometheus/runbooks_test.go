package prometheus_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette/server/config"
)

// rule is an alert.
type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func readRules(t *testing.T) (rules []rule) {
	t.Helper()
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules
}

// TestEachAlertHasItsRunbook checks that each alert links to a section of its own in docs/alerts.md, which says what it means and
// what to do, and that there are no other sections.
func TestEachAlertHasItsRunbook(t *testing.T) {
	text, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(text), "\n## ")[1:]
	var named []string
	for _, section := range sections {
		name, body, _ := strings.Cut(section, "\n")
		named = append(named, name)
		for _, part := range []string{"**How to see it.**", "**What to do.**", "**It ends**"} {
			if strings.Count(body, part) != 1 {
				t.Errorf("section %s does not have %q once", name, part)
			}
		}
	}
	var alerts []string
	for _, r := range readRules(t) {
		alerts = append(alerts, r.Alert)
		const page = "https://github.com/vedette-io/vedette/blob/main/docs/alerts.md#"
		if got, want := r.Annotations["runbook_url"], page+strings.ToLower(r.Alert); got != want {
			t.Errorf("alert %s: got runbook_url %q, want %q", r.Alert, got, want)
		}
	}
	if !slices.Equal(named, alerts) || len(alerts) < 20 {
		t.Errorf("docs/alerts.md has sections %v, and the rules have alerts %v", named, alerts)
	}
}

// aggregates are expressions whose result has no instance.
var aggregates = regexp.MustCompile(`\bby \(job\)|^absent\(`)

// TestAlertsNameWho checks that summaries name job and instance, and the pod only where there is one.
func TestAlertsNameWho(t *testing.T) {
	const who = "{{ $labels.job }} {{ $labels.instance }}{{ with $labels.pod }} (pod {{ . }}){{ end }}"
	for _, r := range readRules(t) {
		summary := r.Annotations["summary"]
		switch {
		case strings.HasPrefix(r.Expr, "absent("):
		case aggregates.MatchString(r.Expr):
			if !strings.Contains(summary, "{{ $labels.job }}") || strings.Contains(summary, "instance") {
				t.Errorf("alert %s is about a job: %s", r.Alert, summary)
			}
		case !strings.Contains(summary, who):
			t.Errorf("alert %s does not name who: %s", r.Alert, summary)
		}
		if strings.Contains(strings.ReplaceAll(summary, who, ""), "pod") {
			t.Errorf("alert %s names a pod that may not exist: %s", r.Alert, summary)
		}
	}
}

// seconds finds the limit of an expression about a time in seconds.
var seconds = regexp.MustCompile(`_seconds\b.* > (\d+)$`)

// TestAlertsAreInTime checks with the defaults of the programs that alerts fire while something can still be done:
// within half of the time after which it is too late, including two intervals of Prometheus.
func TestAlertsAreInTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "vedette-server.yml")
	if err := os.WriteFile(file, []byte("server: {port: 7002}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	grace, maxStale := cfg.Accounts.Grace, time.Duration(cfg.Upstream.MaxStale)
	if grace < time.Minute || maxStale < time.Minute {
		t.Fatalf("got defaults %v and %v", grace, maxStale)
	}
	late := map[string]time.Duration{
		"VedetteAgentDown": grace, "VedetteAgentAbsent": grace, "VedetteAgentDisconnected": grace, "VedetteAccountsWithoutAgent": grace,
		"VedetteServerDown": grace, "VedetteServerAbsent": grace, "VedetteDataIsOld": grace, "VedetteAgentChangesWait": 2 * grace,
		"VedetteUpstreamAnswerOld": maxStale,
	}
	const intervals = 2 * time.Minute // of a slow Prometheus: one to scrape, one to evaluate
	for _, r := range readRules(t) {
		limit, known := late[r.Alert]
		if !known {
			continue
		}
		delete(late, r.Alert)
		fires := intervals
		if r.For != "" {
			d, err := time.ParseDuration(r.For)
			if err != nil {
				t.Fatal(err)
			}
			fires += d
		}
		if m := seconds.FindStringSubmatch(r.Expr); m != nil {
			d, err := time.ParseDuration(m[1] + "s")
			if err != nil {
				t.Fatal(err)
			}
			fires += d
		}
		if fires > limit/2 {
			t.Errorf("alert %s fires after %v, and after %v it is too late", r.Alert, fires, limit)
		}
	}
	for alert := range late {
		t.Errorf("there is no alert %s", alert)
	}
}
