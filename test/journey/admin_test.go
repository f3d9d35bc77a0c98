package journey

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
)

// TestAdminPathsOfAnAgent reads what operators see of an agent of a real cluster.
func TestAdminPathsOfAnAgent(t *testing.T) {
	h := start(t, agent.Account{Name: "one"}, redact.Config{})
	h.awaitLive(len(vedette.DefaultKinds))
	var accounts []struct {
		Config struct{ Name string }
		State  struct{ Name, Phase string }
		Kinds  []string
	}
	h.getAdmin("/accounts?State.Name=Healthy", &accounts)
	if len(accounts) != 1 || accounts[0].Config.Name != "one" || accounts[0].State.Phase != "reporting" ||
		len(accounts[0].Kinds) != len(vedette.DefaultKinds) || !slices.Contains(accounts[0].Kinds, "Deployment.apps") {
		t.Errorf("got accounts %+v", accounts)
	}
	var watches []struct{ Account, Kind, State, Since string }
	h.await("live watches", func() bool { // the server calls a feed live when its snapshot has ended
		return h.getAdmin("/watches?state=live&account=one&limit=2", &watches) == len(vedette.DefaultKinds)
	})
	if len(watches) != 2 || watches[0].Account != "one" || watches[0].State != "live" || watches[0].Since == "" {
		t.Errorf("got the watches %+v", watches)
	}
	if total := h.getAdmin("/watches?state=failing", &watches); total != 0 {
		t.Errorf("got failing watches %+v", watches)
	}
	var version struct{ GitVersion string }
	h.getAdmin("/accounts/one/version", &version)
	if version.GitVersion == "" {
		t.Error("got no version of the cluster")
	}
	var ready struct{ Ready bool }
	h.getAdmin("/ready", &ready)
	if !ready.Ready {
		t.Error("got not ready, want ready")
	}
	h.stopAgent()
	if total := h.getAdmin("/watches", &watches); total != 0 {
		t.Errorf("got watches of a stopped agent: %+v", watches)
	}
}

// getAdmin decodes a response of the agent to a request from its own machine, and returns the number
// of items on all pages.
func (h *stack) getAdmin(path string, into any) (total int) {
	h.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	r.RemoteAddr = "127.0.0.1:4711"
	w := httptest.NewRecorder()
	agent.Handler(h.agent, h.newLogger("agent")).ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil || w.Code != http.StatusOK {
		h.t.Fatalf("GET %s: status %d, %v in %s", path, w.Code, err, w.Body)
	}
	total, _ = strconv.Atoi(w.Header().Get("X-Total-Count")) // paths that are not lists have none
	return total
}
