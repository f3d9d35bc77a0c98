package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// clouddriverWith serves an application whose server group has a number of instances.
func clouddriverWith(t *testing.T, instances string) string {
	t.Helper()
	bodies := map[string]string{
		"/credentials":                    `[{"name":"prod","cloudProvider":"kubernetes"}]`,
		"/applications":                   `[{"name":"shop","clusterNames":{"prod":["deployment web"]}}]`,
		"/applications/shop/serverGroups": `[{"account":"prod","region":"shop","name":"replicaSet web-v000","cluster":"deployment web","total":` + instances + `}]`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-SPINNAKER-USER") != "tester" {
			w.WriteHeader(http.StatusForbidden)
		}
		body, known := bodies[r.URL.Path]
		if !known {
			body = "[]"
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestCompareClouddriverReportsDifferences(t *testing.T) {
	clouddriver, same, other := clouddriverWith(t, "1"), clouddriverWith(t, "1"), clouddriverWith(t, "2")
	run := func(args ...string) (string, error) {
		out, _, err := runCLI(t.Context(), append([]string{"compare-clouddriver", "--user", "tester", "--recheck", "0"}, args...)...)
		return out, err
	}
	out, err := run("--clouddriver", clouddriver, "--vedette", same)
	if err != nil || !strings.Contains(out, "0 different, 0 failed") {
		t.Errorf("same answers: got %v\n%s", err, out)
	}
	out, err = run("--clouddriver", clouddriver, "--server", other)
	if err == nil || !strings.Contains(err.Error(), "answers differ") || !strings.Contains(out, ".[].total ×1 in 1, for example /applications/shop/serverGroups") {
		t.Errorf("other answers: got %v\n%s", err, out)
	}
	out, err = run("--clouddriver", clouddriver, "--vedette", other, "-o", "json")
	var report struct{ Total, Different int }
	if jsonErr := json.Unmarshal([]byte(out), &report); err == nil || jsonErr != nil || report.Different == 0 {
		t.Errorf("as JSON: got %v, %v, %+v, want differences", err, jsonErr, report)
	}
	accepted := filepath.Join(t.TempDir(), "accepted.yaml")
	if err := os.WriteFile(accepted, []byte("[{form: '/applications/APP/serverGroups*', field: '.[].total', reason: the cluster changes}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err = run("--clouddriver", clouddriver, "--vedette", other, "--accepted", accepted); err != nil || !strings.Contains(out, "accepted, 0 different") {
		t.Errorf("accepted differences: got %v\n%s", err, out)
	}
}

func TestCompareClouddriverWithRecording(t *testing.T) {
	dir := t.TempDir()
	recorded := `{"path":"/credentials","status":200,"body":[{"name":"prod","cloudProvider":"kubernetes"}]}
{"path":"/applications/shop/serverGroups","status":404,"body":{}}
`
	if err := os.WriteFile(filepath.Join(dir, "clouddriver.jsonl"), []byte(recorded), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := runCLI(t.Context(), "compare-clouddriver", "--user", "tester", "--recording", dir, "--vedette", clouddriverWith(t, "1"))
	if err == nil || !strings.Contains(out, "status 404/200 ×1") || !strings.Contains(out, "2 answers: 1 equal, 0 accepted, 1 different") {
		t.Errorf("got %v\n%s", err, out)
	}
}

func TestCompareClouddriverErrors(t *testing.T) {
	garbage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	t.Cleanup(garbage.Close)
	for args, want := range map[string]string{
		"":                                           "use --clouddriver URL or --recording DIR",
		"--clouddriver http://x --recording y":       "exclude each other",
		"--clouddriver http://x -o yaml":             "use -o json",
		"--clouddriver http://x --parallel 0":        "between 1 and 16",
		"--clouddriver http://x --limit -1":          "must not be negative",
		"--clouddriver ftp://x":                      "is not a URL such as",
		"--clouddriver http://x --accepted /nowhere": "read accepted differences",
		"--recording /nowhere":                       "read the recording",
		"--clouddriver http://127.0.0.1:1 --vedette http://127.0.0.1:1":       "ask clouddriver: GET /credentials: ",
		"--clouddriver " + garbage.URL + " --vedette " + garbage.URL + " -v0": "unknown shorthand flag",
		"--clouddriver " + garbage.URL + " --vedette " + garbage.URL:          "does Clouddriver's API listen there?",
	} {
		_, _, err := runCLI(t.Context(), append([]string{"compare-clouddriver"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", args, err, want)
		}
	}
}
