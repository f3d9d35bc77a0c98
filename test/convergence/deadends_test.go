package convergence

import (
	"strings"
	"testing"
	"time"
)

// TestDeadEnds sends operations that can't succeed. Each ends soon after its deadline,
// in words that say what is wrong and what to do about it.
func TestDeadEnds(t *testing.T) {
	on(t, anyDatabase(), lone, func(t *testing.T, w *world) {
		a, c := w.agents[0], w.clusters[0]
		var d *door
		call := &caller{w: w, account: "account-0"}
		apply := deeds[1].body("dead-end")
		finalized := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "finalized", "finalizers": []string{"example.com/never"}}}
		if err := c.Create(t.Context(), configMap.list(namespaces[0]), finalized); err != nil {
			t.Fatal(err)
		}
		nothing := func() {}
		for _, tt := range []struct {
			why         string
			body        object
			begin, heal func()
			meanwhile   func() // when the API server has been asked
			state       string
			says        []string
		}{
			{"a finalizer never clears", aimed("delete", "configmap", "finalized", nil), nothing, nothing, nil, "failed", []string{"example.com/never", "is being deleted"}},
			{"no agent serves the account", apply, func() { a.kill(); w.vacant() }, a.start, nil, "failed", []string{"no agent serves account account-0", "nothing was done", "vedette agents"}},
			{"the agent is frozen", apply, a.pause, a.resume, nil, "", []string{"agent"}},
			{"the API server is down", apply, c.KillAPIServer, func() { must(t, c.StartAPIServer(t.Context())) }, nil, "failed", []string{"broke the connection off", a.api[c].Address()}},
			{"the API server hangs", apply, func() { must(t, c.PauseAPIServer()) }, func() { must(t, c.ResumeAPIServer()) }, nil, "failed", []string{"deadline"}},
			{"the agent dies half-way", apply, nothing, a.start, a.kill, "lost", []string{"agent a0", "Look at the object before you try again"}},
			{"the answer never comes", apply, nothing, nothing, func() {}, "lost", []string{"may have taken effect"}},
		} {
			if tt.meanwhile != nil && d == nil {
				d = w.through(t, a, c)
			}
			w.ready()
			var s *stop
			if tt.meanwhile != nil {
				s = d.next(true, false)
			}
			tt.begin()
			o := call.order(tt.body["verb"].(string), tt.why, 0, 3*time.Second)
			began := time.Now()
			told := make(chan outcome, 1)
			go func() { told <- call.send(t.Context(), o, tt.body) }()
			if tt.meanwhile != nil {
				await(t, s.reached, tt.why)
				tt.meanwhile()
			}
			out := <-told
			took := time.Since(began)
			tt.heal()
			if s != nil {
				close(s.goOn)
			}
			t.Logf("%s: %v: %s %d %s", tt.why, took.Round(100*time.Millisecond), out.State, out.Status, out.Message)
			if took > o.timeout+5*time.Second || out.State == "" || tt.state != "" && out.State != tt.state {
				t.Errorf("%s: %q after %v", tt.why, out.State, took)
			}
			for _, words := range tt.says {
				if !strings.Contains(out.Message, words) {
					t.Errorf("%s: %q is not in %q", tt.why, words, out.Message)
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
