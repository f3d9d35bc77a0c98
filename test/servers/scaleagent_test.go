package servers

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/test/databases"
)

// TestScaleAgentsPaths asks two servers for what the predecessor's replicas answered: each shows the agents of both. Operations over REST are
// taken only where that is switched on, and only from servers.
func TestScaleAgentsPaths(t *testing.T) {
	in := newInstallation(t, databases.PostgreSQL(t))
	off := in.startServer("off")
	on := in.startServerWith("on", func(cfg *server.Config) { cfg.Peers.RESTOperations = true })
	in.startAgent("a1", off, "one", "ConfigMap")
	in.startAgent("a2", on, "two", "ConfigMap")
	for _, s := range []*oneServer{off, on} {
		s.awaitLive("one", 1)
		s.awaitLive("two", 1)
		var agents []struct {
			AgentID, ClouddriverID string
			Accounts               []string
			Caching                bool
		}
		s.get("/armory/agents", &agents)
		if got := fmt.Sprint(agents); got != "[{a1 off [one] true} {a2 on [two] true}]" {
			t.Errorf("got the agents %s", got)
		}
		var page struct {
			Items []struct{ Name, Status string }
			Total int
		}
		s.get("/armory/accounts", &page)
		if got := fmt.Sprint(page); got != "{[{one ACTIVE} {two ACTIVE}] 2}" {
			t.Errorf("got the accounts %s", got)
		}
		for _, account := range []string{"one", "two"} {
			var namespaces []string
			if status := s.get("/agents/kubernetes/accounts/"+account+"/namespaces", &namespaces); status != http.StatusOK || !slices.Contains(namespaces, "default") {
				t.Errorf("got %d, %v as the namespaces of %s", status, namespaces, account)
			}
		}
	}
	for _, path := range []string{"/armory/agent/operations", "/armory/agent/operationresults"} {
		for _, authorization := range []string{"", "Basic dXNlcjpwYXNzd29yZA==", "Bearer token", "Vedette-Server e30.AA"} {
			if status, challenge := post(t, on, path, authorization); status != http.StatusUnauthorized || !strings.HasPrefix(challenge, `Vedette-Server challenge="`) {
				t.Errorf("%s with %q: got %d and the challenge %q, want 401", path, authorization, status, challenge)
			}
			if status, challenge := post(t, off, path, authorization); status != http.StatusMethodNotAllowed && status != http.StatusNotFound || challenge != "" {
				t.Errorf("%s with %q, switched off: got %d and the challenge %q", path, authorization, status, challenge)
			}
		}
	}
}

// post sends a request as somebody who is no server, and returns the status and the challenge.
func post(t *testing.T, to *oneServer, path, authorization string) (status int, challenge string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+to.REST().String()+path, bytes.NewReader([]byte(`{"operation":"","result":""}`)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", authorization)
	r.Header.Set("X-Spinnaker-User", "admin")
	r.Header.Set("X-Spinnaker-Accounts", "one,two")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("WWW-Authenticate")
}
