package compare_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/internal/compare"
)

// answers is a source with fixed answers by path: "200 BODY".
type answers map[string]string

func (a answers) Answer(_ context.Context, path string) (compare.Answer, error) {
	status, body, found := strings.Cut(a[path], " ")
	if !found {
		return compare.Answer{}, fmt.Errorf("ask a test: GET %s: connection refused", path)
	}
	r := compare.Answer{Path: path, Body: json.RawMessage(body)}
	_, err := fmt.Sscan(status, &r.Status)
	return r, err
}

func parseRules(t *testing.T, text string) compare.Rules {
	t.Helper()
	rules, err := compare.ParseRules([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func TestReportCountsDifferencesByForm(t *testing.T) {
	clouddriver := answers{
		"/applications/a": `200 {"name":"a"}`, "/applications/b": `200 {"name":"b","n":1}`, "/applications/c": `200 {"name":"c","n":1,"m":1}`,
		"/tags": `500 {"message":"boom"}`, "/networks": `200 {}`, "/vpcs": `200 []`,
	}
	vedette := answers{
		"/applications/a": `200 {"name":"a"}`, "/applications/b": `200 {"name":"b","n":2}`, "/applications/c": `200 {"name":"c","n":3,"m":2}`,
		"/tags": `200 []`, "/vpcs": `200 []`,
	}
	rules := parseRules(t, `
- {form: /applications/*, field: .n, reason: n is random}
- {form: /tags, field: status 500/*, reason: a fault}
`)
	paths := []string{"/vpcs", "/tags", "/applications/c", "/applications/b", "/applications/a", "/networks"}
	report, err := compare.Run(t.Context(), clouddriver, vedette, paths, compare.Options{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := report.Print(&text, false); err != nil {
		t.Fatal(err)
	}
	const want = `/applications/APP: 1 of 3 equal, 1 accepted, 1 different
    .m ×1 in 1, for example /applications/c
        clouddriver: 1
        vedette:     2
    accepted .n ×2 in 2: n is random
/networks: 0 of 1 equal, 1 failed
    error ×1 in 1, for example /networks
        ask a test: GET /networks: connection refused
/tags: 0 of 1 equal, 1 accepted
    accepted status 500/200 ×1 in 1: a fault
/vpcs: 1 of 1 equal

6 answers: 2 equal, 2 accepted, 1 different, 1 failed
`
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
	if report.OK() {
		t.Error("got a report without differences, want one with")
	}
	if got := fmt.Sprint(report.Differing()); got != "[/applications/c /networks]" {
		t.Errorf("got differing paths %s, want /applications/c and /networks", got)
	}
}

// TestPassingDifferencesAreNotReported checks that a difference which is gone after the pause is not reported.
func TestPassingDifferencesAreNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clouddriver := answers{"/applications/a": `200 1`, "/applications/b": `200 1`, "/applications/c": `200 1`}
		vedette := answers{"/applications/a": `200 2`, "/applications/b": `200 2`, "/applications/c": `200 1`}
		paths := []string{"/applications/a", "/applications/b", "/applications/c"}
		report, err := compare.Run(t.Context(), clouddriver, vedette, paths, compare.Options{})
		if err != nil || report.Different != 2 {
			t.Fatalf("got %+v, %v, want 2 different answers", report, err)
		}
		clouddriver["/applications/a"] = "200 2"
		started := time.Now()
		report, err = compare.Recheck(t.Context(), clouddriver, vedette, report, time.Minute, compare.Options{})
		if err != nil || report.Total != 3 || report.Equal != 2 || fmt.Sprint(report.Differing()) != "[/applications/b]" {
			t.Errorf("got %+v, %v, want 3 answers, of which /applications/b differs", report, err)
		}
		if pause := time.Since(started); pause != time.Minute {
			t.Errorf("got a pause of %s, want 1m", pause)
		}
	})
}

func TestRecheckEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := compare.Recheck(ctx, answers{}, answers{}, &compare.Report{}, time.Hour, compare.Options{}); err == nil {
		t.Error("got no error after the context ended")
	}
}

// TestSecretsAreHidden checks that values that may be secret are neither in the text nor in JSON.
func TestSecretsAreHidden(t *testing.T) {
	const canary = "hunter2"
	bodies := []string{
		`{"manifest":{"kind":"ConfigMap","data":{"key":"hunter2"}}}`,
		`{"manifest":{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"hunter2"}}}}`,
		`{"manifest":{"spec":{"containers":[{"name":"a","env":[{"name":"X","value":"hunter2"}],"args":["hunter2"]}]}}}`,
		`{"dbPassword":"hunter2"}`,
		`[{"name":"x","kubeconfigContents":"hunter2"}]`,
		`{"nested":{"token":{"deep":["hunter2"]}}}`,
	}
	clouddriver, vedette := answers{}, answers{}
	var paths []string
	for i, body := range bodies {
		for j, other := range []string{`200 {"manifest":{}}`, `404 {}`, `200 []`, `200 ` + strings.ReplaceAll(body, canary, "other")} {
			path := fmt.Sprintf("/applications/%d-%d", i, j)
			paths = append(paths, path)
			clouddriver[path], vedette[path] = "200 "+body, other
		}
	}
	report, err := compare.Run(t.Context(), clouddriver, vedette, paths, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Different != len(paths) {
		t.Errorf("got %d different answers, want %d", report.Different, len(paths))
	}
	var out strings.Builder
	if err := report.Print(&out, false); err != nil {
		t.Fatal(err)
	}
	if err := report.PrintJSON(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), canary) || !strings.Contains(out.String(), "***") {
		t.Errorf("the report has a value that may be secret, or nothing in its place:\n%s", out.String())
	}
}

func TestSpinnakerAnnotationsAreShown(t *testing.T) {
	a := answers{"/x": `200 {"manifest":{"annotations":{"moniker.spinnaker.io/application":"shop","other/one":"hidden"}}}`}
	b := answers{"/x": `200 {"manifest":{}}`}
	report, err := compare.Run(t.Context(), a, b, []string{"/x"}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := report.Forms[0].Groups[0].Clouddriver; got != `{"moniker.spinnaker.io/application":"shop","other/one":"***"}` {
		t.Errorf("got %s, want the annotation of Spinnaker only", got)
	}
}

func TestAcceptedRulesAreNarrow(t *testing.T) {
	rules, err := compare.AcceptedRules()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if r.Form == "*" || r.Field == "*" || len(r.Reason) < 20 {
			t.Errorf("%+v: got a rule that accepts too much or has no reason", r)
		}
	}
	for _, text := range []string{"{", "- {form: a}", "- {form: a, field: b, reason: c, unknown: d}", "- {form: a, field: b}"} {
		if _, err := compare.ParseRules([]byte(text)); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
}

// TestAcceptedServerGroupsOfServices checks that server groups which only Vedette relates to Services are accepted, and not the other way
// round.
func TestAcceptedServerGroupsOfServices(t *testing.T) {
	rules, err := compare.AcceptedRules()
	if err != nil {
		t.Fatal(err)
	}
	group := `{"account":"prod","name":"replicaSet web-v003","region":"shop"}`
	balancers := func(groups string) string {
		return `[{"account":"prod","name":"service web","serverGroups":[` + groups + `]}]`
	}
	groups := func(balancers string) string {
		return `[{"account":"prod","name":"replicaSet web-v003","isDisabled":` + map[bool]string{true: "true", false: "false"}[balancers == ""] + `,"loadBalancers":[` + balancers + `]}]`
	}
	for _, tt := range []struct{ path, without, with string }{
		{"/applications/shop/loadBalancers", balancers(""), balancers(group)},
		{"/kubernetes/loadBalancers/prod/shop/service%20web", balancers(""), balancers(group)},
		{"/applications/shop/serverGroups?expand=true", groups(""), groups(`"service web"`)},
		{"/serverGroups?applications=shop", groups(""), groups(`"service web"`)},
		{"/applications/shop/clusters/prod", groups(""), groups(`"service web"`)},
		{"/applications/shop/clusters/prod/replicaSet%20web/kubernetes", `{"serverGroups":` + groups("") + `,"loadBalancers":[]}`,
			`{"serverGroups":` + groups(`"service web"`) + `,"loadBalancers":` + balancers(group) + `}`},
		{"/serverGroups/prod/shop/replicaSet%20web-v003", `{"name":"a","disabled":true,"loadBalancers":[]}`, `{"name":"a","disabled":false,"loadBalancers":["service web"]}`},
	} {
		ask := func(clouddriver, vedette string) *compare.Report {
			report, err := compare.Run(t.Context(), answers{tt.path: "200 " + clouddriver}, answers{tt.path: "200 " + vedette}, []string{tt.path}, compare.Options{Rules: rules})
			if err != nil {
				t.Fatal(err)
			}
			return report
		}
		if report := ask(tt.without, tt.with); report.Accepted != 1 {
			t.Errorf("%s: got %+v, want accepted what only Vedette has", tt.path, report.Forms)
		}
		if report := ask(tt.with, tt.without); report.Different != 1 {
			t.Errorf("%s: got %+v, want different what only Clouddriver has", tt.path, report.Forms)
		}
	}
}

func TestRulesAcceptOnlyWhatTheyDescribe(t *testing.T) {
	rules := parseRules(t, `[{form: "/search?*", path: "*page=1*", field: ".[].results*", vedette: '"b*', reason: pages have no order}]`)
	d := compare.Difference{Field: ".[].results.[].name", A: `"a"`, B: `"bc"`}
	if rules.Find("/search?page&type", "/search?page=1&type=x", d) == nil {
		t.Error("got no rule for a difference that it describes")
	}
	for _, tt := range []struct{ form, path, field, b string }{
		{"/searches", "/search?page=1", d.Field, d.B},
		{"/search?page", "/search?page=2", d.Field, d.B},
		{"/search?page", "/search?page=1", ".[].total", d.B},
		{"/search?page", "/search?page=1", d.Field, `"c"`},
	} {
		if rule := rules.Find(tt.form, tt.path, compare.Difference{Field: tt.field, A: d.A, B: tt.b}); rule != nil {
			t.Errorf("%+v: got a rule, want none", tt)
		}
	}
}
