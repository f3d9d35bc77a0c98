package clouddriver_test

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/readtest"
)

// TestScaleAgentHints checks that each path of the Scale Agent says what there is instead, and that other paths say
// nothing.
func TestScaleAgentHints(t *testing.T) {
	for _, tt := range []struct{ request, want string }{
		{"POST /armory/accounts", "kubernetes.accounts"},
		{"PATCH /armory/accounts", "a later release"},
		{"DELETE /armory/accounts", "kubernetes.accounts"},
		{"DELETE /armory/accounts/prod", "kubernetes.accounts"},
		{"POST /armory/accounts/dynamic", "kubernetes.accounts"},
		{"PUT /armory/accounts/dynamic/", "kubernetes.accounts"},
		{"POST /armory/agent/agent-1/disconnect", "restarted"},
		{"POST /armory/agent/assignments", "at once"},
		{"POST /armory/agent/operations", "POST /vedette/v1/operations"},
		{"POST /armory/agent/operationresults", "POST /vedette/v1/operations"},
		{"POST /armory/agent/operations/database", "POST /vedette/v1/operations"},
		{"GET /armory/clouddrivers/sql/pool/settings", "prometheus.enabled"},
		{"GET /armory/something/else", "openapi.yaml"},
		{"GET /armory", "openapi.yaml"},
		{"GET /armory/%2e%2e/%00", "openapi.yaml"},
		{"GET /armoryx", ""},
		{"GET /agents", ""},
		{"GET /no/such/path", ""},
	} {
		method, path, _ := strings.Cut(tt.request, " ")
		if got := web.ScaleAgentHint(method, path); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.request, got, tt.want)
		}
	}
}

// TestScaleAgentPathsAnswer asks a server for paths that it does not have.
func TestScaleAgentPathsAnswer(t *testing.T) {
	server := serve(t, clouddriver.Config{Store: readtest.New(t).Store})
	for _, tt := range []struct {
		request string
		status  int
		want    string
	}{
		{"GET /armory/no/such", 404, `"message":"No handler found for GET /armory/no/such: this server has no such path. GET /vedette/v1/openapi.yaml describes its own API"`},
		{"POST /armory/accounts", 405, "kubernetes.accounts"},
		{"POST /armory/agent/operations", 405, `"message":"Request method 'POST' is not supported: servers forward operations to each other at server.peers.port`},
		{"DELETE /armory/agent/operations/1", 405, `"message":"Request method 'DELETE' is not supported"`},
		{"GET /no/such/path", 404, `"message":"No handler found for GET /no/such/path"`},
	} {
		method, path, _ := strings.Cut(tt.request, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, server+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != tt.status || !strings.Contains(string(body), tt.want) {
			t.Errorf("%s: got %s %s, %v, want %d %s", tt.request, response.Status, body, err, tt.status, tt.want)
		}
	}
}

// TestScaleAgentHintsNameRealPaths checks that each path that a hint names exists in our own API.
func TestScaleAgentHintsNameRealPaths(t *testing.T) {
	source, err := os.ReadFile("../api/api.go")
	if err != nil {
		t.Fatal(err)
	}
	hints, err := os.ReadFile("web/scale_agent.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(GET|POST) (/vedette/v1/[a-z/.{}]+)`).FindAllStringSubmatch(string(hints), -1)
	if len(named) < 2 {
		t.Fatalf("got %q", named)
	}
	for _, path := range named {
		method := map[string]string{"GET": "MethodGet", "POST": "MethodPost"}[path[1]]
		if !strings.Contains(string(source), "{http."+method+`, "`+strings.TrimSuffix(path[2], ".")+`", `) {
			t.Errorf("%s does not exist", path[0])
		}
	}
}
