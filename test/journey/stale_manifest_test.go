package journey

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
)

// TestManifestsWithoutAgent checks that manifests are shown at once after their agent has gone, in the form in which the
// agent read them from the cluster, and that stages are asked to wait.
func TestManifestsWithoutAgent(t *testing.T) {
	for _, o := range []struct {
		path string
		body any
	}{
		{"/api/v1/namespaces/default/secrets", map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"password": "c4n4ry-5t4l3"},
			"metadata": map[string]any{"name": "left-behind", "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"moniker.spinnaker.io/application": "shop"}}}},
		{"/apis/apps/v1/namespaces/default/deployments", map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "left-behind"},
			"spec": map[string]any{"replicas": 0, "selector": map[string]any{"matchLabels": map[string]any{"a": "left"}},
				"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "left"}},
					"spec": map[string]any{"containers": []any{map[string]any{"name": "m", "image": "i", "env": []any{map[string]any{"name": "DB_PASSWORD", "value": "c4n4ry-5t4l3"}}}}}}}}},
	} {
		if err := plane.Create(t.Context(), o.path, o.body); err != nil {
			t.Fatal(err)
		}
	}
	h := start(t, agent.Account{Name: "one", Selection: watch.Selection{Kinds: []string{"Secret", "Deployment"}}}, redact.Config{Environment: []string{"*PASSWORD*"}})
	h.awaitLive(2)
	kinds := []string{"secret", "deployment"}
	live := map[string]any{}
	for _, kind := range kinds {
		h.await("the stored "+kind+" to be as in the cluster", func() bool { // the controller writes its status
			live[kind] = h.readLive(kind)
			var stored struct{ Manifest any }
			return h.get("/manifests/one/default/"+kind+"%20left-behind", &stored) && reflect.DeepEqual(stored.Manifest, live[kind])
		})
	}
	h.await("a heartbeat that says how old the data is", func() bool {
		var list struct{ Items []struct{ LagMs *int64 } }
		return h.get("/vedette/v1/feeds", &list) && !slices.ContainsFunc(list.Items, func(f struct{ LagMs *int64 }) bool { return f.LagMs == nil })
	})
	h.stopAgent()
	for _, kind := range kinds {
		path := "/manifests/one/default/" + kind + "%20left-behind"
		var shown struct{ Manifest any }
		var response *http.Response
		h.await("the "+kind+" to be stale, with its age", func() bool { // the server stores the age after the agent has gone
			response = h.request(path, "", &shown)
			return response.Header.Get("Vedette-Stale") == "true" && response.Header.Get("Age") != ""
		})
		if age, err := strconv.Atoi(response.Header.Get("Age")); err != nil || age > 60 || response.Header.Get("Vedette-Watermark") == "" {
			t.Errorf("%s: got headers %v, want its age", kind, response.Header)
		}
		if !reflect.DeepEqual(shown.Manifest, live[kind]) {
			t.Errorf("%s: got %v, want what the agent read from the cluster: %v", kind, shown.Manifest, live[kind])
		}
		begin := time.Now()
		if response := h.request(path, "01EXECUTION", nil); response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" || time.Since(begin) > 9*time.Second { // a cluster is waited for for 10 s
			t.Errorf("%s for a stage: got %d with %v after %v, want 503 with Retry-After at once", kind, response.StatusCode, response.Header, time.Since(begin))
		}
	}
}

// readLive returns an object as the agent reads it from the cluster.
func (h *stack) readLive(kind string) any {
	h.t.Helper()
	var out struct{ Objects []any }
	answer := h.post("/vedette/v1/operations", `{"account":"one","verb":"get","kind":"`+kind+`","namespace":"default","name":"left-behind"}`)
	if err := json.Unmarshal(answer, &out); err != nil || len(out.Objects) != 1 {
		h.t.Fatalf("got %s, want the %s", answer, kind)
	}
	return out.Objects[0]
}

// request gets a path for a stage of an execution, or for none.
func (h *stack) request(path, execution string, into any) *http.Response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, "http://"+h.srv.REST().String()+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	if execution != "" {
		r.Header.Set("X-SPINNAKER-EXECUTION-ID", execution)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer response.Body.Close()
	if into != nil && response.StatusCode == http.StatusOK {
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			h.t.Fatalf("GET %s: %v", path, err)
		}
	}
	return response
}
