package hostile

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestLargeHalvesStayWithinMemory lets the API servers of many accounts, or the many feeds of one, send the beginning of something large
// and stop. What the agent holds of them together must stay within its limit, and an account beside them must be live.
func TestLargeHalvesStayWithinMemory(t *testing.T) {
	half := func(before string, size int) func(http.ResponseWriter, *http.Request) {
		return respondAndHang(before + strings.Repeat("x", size))
	}
	kinds := onRequest(requestsPath("/apis"), manyKinds(300))
	var things strings.Builder
	for i := range 300 {
		fmt.Fprintf(&things, ", Thing.g%d", i)
	}
	for _, tt := range []struct {
		name     string
		accounts int
		kinds    string
		attack   attack
	}{
		{"versions", 48, "configmap", onRequest(requestsPath("/version"), half(`{"gitVersion":"`, 7<<20))},
		{"namespaces", 48, "configmap", func(w http.ResponseWriter, r *http.Request) bool {
			hidden := onRequest(requestsPath("/api/v1/namespaces/kube-system"), respondWith(403, "X", "y", `{"kind":"Status","code":403}`))
			return hidden(w, r) || onRequest(requestsPath("/api/v1/namespaces"), half(`{"metadata":{},"items":[{"metadata":{"name":"`, 7<<20))(w, r)
		}},
		{"kinds", 48, "configmap", onRequest(requestsPath("/apis"), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
			half(`{"kind":"APIGroupDiscoveryList","metadata":{},"items":[{"metadata":{"name":"`, 7<<20)(w, r)
		})},
		{"kinds of old API servers", 48, "configmap", onRequest(requestsPath("/apis"), half(`{"kind":"APIGroupList","groups":[{"name":"`, 7<<20))},
		{"watches", 1, "configmap" + things.String(), func(w http.ResponseWriter, r *http.Request) bool {
			return kinds(w, r) || onRequest(func(r *http.Request) bool { return r.URL.Query().Has("watch") },
				half(`{"type":"ADDED","object":{"metadata":{"name":"`, 1900<<10))(w, r)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startServer(t)
			clusters := map[string]*apiServer{}
			for i := range tt.accounts {
				clusters[fmt.Sprint("attacker-", i)] = startAPIServer(t, tt.attack)
			}
			clusters["well"] = startAPIServer(t, func(http.ResponseWriter, *http.Request) bool { return false })
			agent := startAgentOf(t, s, clusters, 1, tt.kinds)
			time.Sleep(15 * time.Second)
			awaitVisible(t, s.rest, clusters["well"].change())
			t.Logf("the agent took %d MiB", agent.peak()>>20)
			if peak := agent.peak(); peak > operatingAgentLimit {
				t.Errorf("got %d MiB of memory of the agent, want at most %d", peak>>20, operatingAgentLimit>>20)
			}
		})
	}
}
