package api_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
)

// fakeAccountAdmin records decisions.
type fakeAccountAdmin struct {
	decisions []string
	err       error
}

func (f *fakeAccountAdmin) Accept(_ context.Context, account vedette.AccountName, agent vedette.AgentID) (vedette.Cluster, error) {
	f.decisions = append(f.decisions, "accept "+string(account)+" "+string(agent))
	return vedette.Cluster{UID: "u2", Host: "https://u2"}, f.err
}

func (f *fakeAccountAdmin) Release(_ context.Context, account vedette.AccountName) error {
	f.decisions = append(f.decisions, "release "+string(account))
	return f.err
}

func (f *fakeAccountAdmin) Remove(_ context.Context, account vedette.AccountName) ([]vedette.AgentID, error) {
	f.decisions = append(f.decisions, "remove "+string(account))
	return []vedette.AgentID{"a1"}, f.err
}

// TestInvalidDecisionsHaveNoEffect checks requests that change accounts, and those that are rejected without any
// effect.
func TestInvalidDecisionsHaveNoEffect(t *testing.T) {
	const json = "application/json"
	conflict := vedette.Errorf(vedette.Conflict, "it is in use")
	for _, tt := range []struct {
		name, request, contentType, origin, body string
		err                                      error
		status                                   int
		answer, decision                         string
	}{
		{"accept", "POST /accounts/dev/accept", json, "", `{"agent":"b1"}`, nil, 200, `{"account":"dev","cluster":{"uid":"u2","host":"https://u2"}}`, "accept dev b1"},
		{"accept without a body", "POST /accounts/dev/accept", json, "", "", nil, 200, `"account":"dev"`, "accept dev "},
		{"release", "POST /accounts/dev/release", json, "", "{}", nil, 200, `{"account":"dev"}`, "release dev"},
		{"remove", "DELETE /accounts/dev", "", "", "", nil, 200, `{"account":"dev","agents":["a1"]}`, "remove dev"},
		{"an error", "POST /accounts/dev/release", json, "", "{}", conflict, 409, "it is in use", "release dev"},
		{"no such account", "DELETE /accounts/devv", "", "", "", nil, 404, "did you mean dev", ""},
		{"an unknown field", "POST /accounts/dev/accept", json, "", `{"agnet":"b1"}`, nil, 400, "optional field agent", ""},
		{"a large body", "POST /accounts/dev/accept", json, "", `{"agent":"` + strings.Repeat("b", 8<<10) + `"}`, nil, 400, "optional field agent", ""},
		{"a long agent", "POST /accounts/dev/accept", json, "", `{"agent":"` + strings.Repeat("b", 256) + `"}`, nil, 400, "more than the limit of 255", ""},
		{"a form of a web page", "POST /accounts/dev/accept", "text/plain", "", "{}", nil, 415, "Content-Type: application/json", ""},
		{"another site", "DELETE /accounts/dev", "", "https://evil.example.com", "", nil, 403, "cross-origin", ""},
		{"a parameter", "DELETE /accounts/dev?all=true", "", "", "", nil, 400, "all", ""},
	} {
		admin, logs := &fakeAccountAdmin{err: tt.err}, &bytes.Buffer{}
		cfg := configOf(shopWorld(t))
		cfg.Accounts, cfg.Log = admin, slog.New(slog.NewTextHandler(logs, nil))
		server := serve(t, cfg)
		method, path, _ := strings.Cut(tt.request, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, server.url+"/vedette/v1"+path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": tt.contentType, "Origin": tt.origin, "X-SPINNAKER-USER": "ann"} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		server.validateResponse(r, response, body)
		if err != nil || response.StatusCode != tt.status || !strings.Contains(string(body), tt.answer) || strings.Join(admin.decisions, "|") != tt.decision {
			t.Errorf("%s: got %d %s and the decisions %q, want %d %s and %q", tt.name, response.StatusCode, body, admin.decisions, tt.status, tt.answer, tt.decision)
		}
		if isLogged := strings.Contains(logs.String(), "account=dev caller.user=ann"); isLogged != (tt.status == 200) {
			t.Errorf("%s: got the log %s", tt.name, logs)
		}
	}
}

// TestConflictsAreShown checks that an account shows the other cluster that wants its name.
func TestConflictsAreShown(t *testing.T) {
	w := shopWorld(t)
	w.Fleet.SetAgents(api.Agent{ID: "b1", Connected: time.Now(), Accounts: []api.AgentAccount{
		{Name: "dev", Role: api.Refused, Notice: "another cluster", Conflict: &vedette.Cluster{UID: "u2", Host: "https://u2", Fingerprint: "AA:BB"}}}})
	server := serve(t, configOf(w))
	const want = `"conflicts":[{"agent":"b1","cluster":{"uid":"u2","host":"https://u2","fingerprint":"AA:BB"}}]`
	for _, path := range []string{"/accounts/dev", "/accounts?account=dev"} {
		if _, body := server.get(path); !bytes.Contains(body, []byte(want)) {
			t.Errorf("%s: got %s, want %s", path, body, want)
		}
	}
}
