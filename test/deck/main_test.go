package main

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestOnlyMissingLinesAreNamed(t *testing.T) {
	const one = "web-6d4cf56db8-x2k4v 3 minutes ago\norders1\n\n10.0.0.7 started 2026-01-02 03:04:05 UTC\nReady\n"
	for other, want := range map[string][]string{
		"Ready\nweb-5b7f9d8c46-zzzzz 2 hours ago\n10.0.1.8 started 2027-01-02 03:04:05 UTC\norders2\n": nil,
		"web-5b7f9d8c46-zzzzz 2 hours ago\norders\n":                                                   {"ADDRESS started TIME", "Ready"},
		one + "Ready\n": nil,
	} {
		if got := missing(one, other); !slices.Equal(got, want) {
			t.Errorf("missing in %q: got %q, want %q", other, got, want)
		}
	}
}

func TestReportNamesDifferentSteps(t *testing.T) {
	ok := observation{text: "Up", requests: []request{{Method: "GET", Path: "/gate/a", Status: 200}}}
	bad := observation{text: "Down", requests: []request{{Method: "GET", Path: "/gate/a", Status: 500}}, errors: []string{"TypeError"}}
	results := []result{
		{"same", false, []string{"x", "y"}, map[string]observation{"x": ok, "y": ok}},
		{"action", true, []string{"x", "y"}, map[string]observation{"x": ok, "y": {text: "Gone"}}},
		{"different", false, []string{"x", "y"}, map[string]observation{"x": ok, "y": bad}},
	}
	var out strings.Builder
	if wrong := report(&out, results); wrong != 1 {
		t.Errorf("got %d wrong steps, want 1", wrong)
	}
	for _, want := range []string{"same       1/1       0       yes", "action     1/0       0       -", "different  1/1       2       NO", "GET /gate/a: 500", "TypeError", `"Up" is shown in state x, and not in state y`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwant %q in it", out.String(), want)
		}
	}
}

// TestStandInStartsSavedPipelines saves a pipeline, and starts it as Gate does.
func TestStandInStartsSavedPipelines(t *testing.T) {
	var started []any
	f := &front50{applications: []string{"shop"}, start: func(p map[string]any) error { started = append(started, p["executionId"]); return nil }}
	server := httptest.NewServer(f.handler())
	defer server.Close()
	if err := post(t.Context(), server.URL+"/pipelines", map[string]any{"application": "shop", "name": "deploy"}, nil); err != nil {
		t.Fatal(err)
	}
	event := map[string]any{"content": map[string]any{"application": "shop", "pipelineNameOrId": "deploy", "trigger": map[string]any{"executionId": "E1"}}}
	if err := post(t.Context(), server.URL+"/", event, nil); err != nil || !slices.Equal(started, []any{"E1"}) {
		t.Errorf("got started %v, error %v, want E1", started, err)
	}
	for path, want := range map[string]string{"/v2/applications/shop": "", "/v2/applications/other": "404", "/pipelines/shop": "", "/pluginInfo": ""} {
		err := get(t.Context(), server.URL+path, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", path, err, want)
		}
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	err := options{chromium: "no-such-browser"}.check()
	for _, want := range []string{"gate.args", "DECK has no index.html", "package chromium of Debian"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}
