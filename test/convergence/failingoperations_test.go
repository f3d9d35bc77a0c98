package convergence

import (
	"strings"
	"testing"
	"time"
)

// TestFailingOperationsEndWithAReason sends operations that cannot succeed. Each must end soon after its
// deadline, with a message that says what is wrong and what to do.
func TestFailingOperationsEndWithAReason(t *testing.T) {
	runOn(t, anyDatabase(), singleAgent, func(t *testing.T, w *world) {
		a, c := w.agents[0], w.clusters[0]
		var p *breakpointProxy
		call := &caller{w: w, account: "account-0"}
		apply := operationCases[1].body("dead-end")
		finalized := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "finalized", "finalizers": []string{"example.com/never"}}}
		if err := c.Create(t.Context(), configMap.list(namespaces[0]), finalized); err != nil {
			t.Fatal(err)
		}
		nothing := func() {}
		for _, tt := range []struct {
			name           string
			body           object
			begin, restore func()
			meanwhile      func() // after the API server has received the request
			state          string
			wantWords      []string
		}{
			{"a finalizer never clears", objectOperation("delete", "configmap", "finalized", nil), nothing, nothing, nil, "failed", []string{"example.com/never", "is being deleted"}},
			{"no agent serves the account", apply, func() { a.Kill(); w.awaitNoHolder() }, a.Start, nil, "failed", []string{"no agent serves account account-0", "nothing was done", "vedette agents"}},
			{"the agent is frozen", apply, a.Pause, a.Resume, nil, "", []string{"agent"}},
			{"the API server is down", apply, c.KillAPIServer, func() { must(t, c.StartAPIServer(t.Context())) }, nil, "failed", []string{"closed the connection in the middle of a request", a.api[c].Address()}},
			{"the API server hangs", apply, func() { must(t, c.PauseAPIServer()) }, func() { must(t, c.ResumeAPIServer()) }, nil, "failed", []string{"deadline"}},
			{"the agent dies after the request", apply, nothing, a.Start, a.Kill, "lost", []string{"agent a0", "Look at the object before you try again"}},
			{"the response is lost", apply, nothing, nothing, func() {}, "lost", []string{"may have taken effect"}},
		} {
			if tt.meanwhile != nil && p == nil {
				p = w.routeThroughBreakpoints(t, a, c)
			}
			w.awaitReady()
			var bp *breakpoint
			if tt.meanwhile != nil {
				bp = p.breakOnNext(true, false)
			}
			tt.begin()
			o := call.newOperation(tt.body["verb"].(string), tt.name, 0, 3*time.Second)
			began := time.Now()
			result := make(chan outcome, 1)
			go func() { result <- call.send(t.Context(), o, tt.body) }()
			if tt.meanwhile != nil {
				await(t, bp.reached, tt.name)
				tt.meanwhile()
			}
			out := <-result
			took := time.Since(began)
			tt.restore()
			if bp != nil {
				close(bp.resume)
			}
			t.Logf("%s: %v: %s %d %s", tt.name, took.Round(100*time.Millisecond), out.State, out.Status, out.Message)
			if took > o.timeout+time.Minute || out.State == "" || tt.state != "" && out.State != tt.state {
				t.Errorf("%s: got state %q after %v", tt.name, out.State, took)
			}
			for _, words := range tt.wantWords {
				if !strings.Contains(out.Message, words) {
					t.Errorf("%s: got message without %q: %q", tt.name, words, out.Message)
				}
			}
		}
		must(t, c.Patch(t.Context(), configMap.list(namespaces[0])+"/finalized", object{"metadata": object{"finalizers": nil}}))
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
