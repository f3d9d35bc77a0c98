package convergence

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
)

// killPoint is when something is killed, relative to the agent's request to the API server.
type killPoint struct {
	name                string
	forwarded, answered bool
	effects             int // how often the request took effect before
}

var killPoints = []killPoint{
	{"before the request is sent", false, false, 0},
	{"before the response arrives", true, false, 1},
	{"before the outcome is sent", true, true, 1},
}

// operationCase is an operation of one verb, on an object of its own.
type operationCase struct {
	name string
	kind kind
	body func(name string) object
	// isIdempotent says that the operation may be sent to another process: it is done then, even
	// though the first one may have done it.
	isIdempotent bool
}

var deploymentKind = kind{"apps", "v1", "Deployment", "deployments", true, replicated}

var operationCases = []operationCase{
	{"create", configMap, func(name string) object {
		return object{"verb": "apply", "strategy": "create", "manifest": object{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": object{"generateName": "made-", "namespace": namespaces[0], "labels": object{"order": name}}}}
	}, false},
	{"apply", configMap, func(name string) object {
		return object{"verb": "apply", "manifest": object{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": object{"name": name, "namespace": namespaces[0], "annotations": object{"done": "yes"}}}}
	}, true},
	{"patch", configMap, func(name string) object {
		return objectOperation("patch", "configmap", name, object{"type": "merge", "patch": object{"metadata": object{"annotations": object{"done": "yes"}}}})
	}, true},
	{"JSON patch", configMap, func(name string) object {
		return objectOperation("patch", "configmap", name, object{"type": "json", "patch": []object{{"op": "add", "path": "/metadata/annotations", "value": object{"done": "yes"}}}})
	}, false},
	{"scale", deploymentKind, func(name string) object { return objectOperation("scale", "deployment", name, object{"replicas": 5}) }, true},
	{"restart", deploymentKind, func(name string) object { return objectOperation("restart", "deployment", name, nil) }, false},
	{"delete", configMap, func(name string) object { return objectOperation("delete", "configmap", name, nil) }, true},
	{"delete if there", configMap, func(name string) object {
		return objectOperation("delete", "configmap", name, object{"missingOk": true})
	}, true},
}

// objectOperation returns an operation on one object.
func objectOperation(verb, kind, name string, extra object) object {
	body := object{"verb": verb, "kind": kind, "namespace": namespaces[0], "name": name}
	maps.Copy(body, extra)
	return body
}

// effects returns how often the operation took effect.
func (op operationCase) effects(t *testing.T, c *cluster, name string) int {
	var list struct {
		Items []struct {
			Metadata struct {
				Name        string
				Labels      map[string]string
				Annotations map[string]string
				Generation  int
			}
		}
	}
	if err := c.Get(t.Context(), op.kind.list(namespaces[0]), &list); err != nil {
		t.Fatal(err)
	}
	n, existing := 0, 0
	for _, i := range list.Items {
		switch m := i.Metadata; {
		case m.Labels["order"] == name:
			n++
		case m.Name == name && (m.Annotations["done"] != "" || m.Generation > 1):
			n++
			existing++
		case m.Name == name:
			existing++
		}
	}
	if op.name == "delete" || op.name == "delete if there" {
		return 1 - existing
	}
	return n
}

// killAtEachPoint sends each operation, and kills something at each kill point.
func killAtEachPoint(t *testing.T, w *world, proxies []*breakpointProxy, kill func(), want func(operationCase, killPoint) (state string, most int)) {
	c, call := w.clusters[0], &caller{w: w, account: "account-0"}
	for _, op := range operationCases {
		for i, point := range killPoints {
			name := strings.ToLower(fmt.Sprintf("m-%s-%d", ulid.Make().String()[20:], i))
			if op.name != "create" && op.name != "apply" {
				o := object{"apiVersion": op.kind.apiVersion(), "kind": op.kind.name, "metadata": object{"name": name}}
				if op.kind.spec != nil {
					o["spec"] = op.kind.spec(name)["spec"]
				}
				if err := c.Create(t.Context(), op.kind.list(namespaces[0]), o); err != nil {
					t.Fatal(err)
				}
			}
			w.restartLoneAgent()
			w.awaitReady()
			o := call.newOperation(op.body(name)["verb"].(string), name, i, 15*time.Second)
			var breakpoints []*breakpoint
			reached := make(chan struct{}, len(proxies))
			for _, p := range proxies {
				bp := p.breakOnNext(point.forwarded, point.answered)
				breakpoints = append(breakpoints, bp)
				go func() { <-bp.reached; reached <- struct{}{} }()
			}
			holder, _ := w.holder(t.Context())
			before := holder.Starts()
			held := make(<-chan struct{})
			if point.answered {
				held = holder.link.HoldOnText(o.id)
			}
			result := make(chan outcome, 1)
			go func() { result <- call.send(t.Context(), o, op.body(name)) }()
			await(t, reached, op.name+" "+point.name)
			if point.answered {
				await(t, held, op.name+" "+point.name)
			}
			if kill(); holder.Starts() == before && holder.IsRunning() { // the request of a dead agent ends with its connection
				for _, bp := range breakpoints {
					close(bp.resume)
				}
			}
			holder.link.Cut()
			holder.link.Heal()
			out := <-result
			state, effects := want(op, point)
			if out.State != state {
				t.Errorf("%s, killed %s: got %q (%d %s), want %q", op.name, point.name, out.State, out.Status, out.Message, state)
			}
			count := -1
			w.eventually(time.Minute, func(context.Context) bool { count = op.effects(t, c, name); return count == effects })
			if count != effects {
				t.Errorf("%s, killed %s: got %d effects, want %d", op.name, point.name, count, effects)
			}
			(&operationLoad{caller: call}).awaitResult(t.Context(), o)
			for _, p := range proxies {
				p.clearBreakpoint()
			}
		}
	}
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s: the kill point was not reached", what)
	}
}

// clearBreakpoint removes a breakpoint that was not reached.
func (p *breakpointProxy) clearBreakpoint() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.breakpoint = nil
}

// restartLoneAgent restarts the only agent after its server was killed, because after many short
// connections it would wait long before the next one.
func (w *world) restartLoneAgent() {
	if a := w.agents[0]; len(w.agents) == 1 && w.server.Starts() > 1 {
		a.Kill()
		a.Start()
	}
}

// awaitReady waits until an agent that holds the account accepts operations.
func (w *world) awaitReady() {
	w.t.Helper()
	probe := &caller{w: w, account: "account-0"}
	var last *sentOperation
	if !w.eventually(convergenceTimeout, func(ctx context.Context) bool {
		a, _ := w.holder(ctx)
		if a == nil {
			return false
		}
		last = probe.newOperation("discover", "", 0, 2*time.Second)
		return probe.send(ctx, last, nil).State == "done"
	}) {
		w.t.Fatalf("no agent accepts operations: %s, %+v", last.lastError, last.outcome())
	}
}

// awaitNoHolder waits until the server knows that no agent serves the account, because until then
// it sends operations to a dead agent and cannot know their outcome.
func (w *world) awaitNoHolder() {
	w.t.Helper()
	if !w.eventually(convergenceTimeout, func(ctx context.Context) bool { a, _ := w.holder(ctx); return a == nil }) {
		w.t.Fatal("the server still considers a dead agent connected")
	}
}

// expectedOutcome returns the expected state and number of effects: idempotent operations are done
// by another process, and of the others it is unknown whether they took effect.
func expectedOutcome(op operationCase, point killPoint) (string, int) {
	if op.isIdempotent { // a delete too, which may find nothing the second time
		return "done", 1
	}
	return "lost", point.effects
}

// TestAgentKilledDuringOperations kills the agent at each kill point of operations of each verb,
// and restarts it.
func TestAgentKilledDuringOperations(t *testing.T) {
	runOn(t, anyDatabase(), singleAgent, func(t *testing.T, w *world) {
		a := w.agents[0]
		p := w.routeThroughBreakpoints(t, a, w.clusters[0])
		killAtEachPoint(t, w, []*breakpointProxy{p}, func() { a.Kill(); a.Start() }, expectedOutcome)
	})
}

// TestStandbyTakesOverOperations kills the agent that holds the account, and leaves the account to
// the other agent.
func TestStandbyTakesOverOperations(t *testing.T) {
	runOn(t, anyDatabase(), twoAgents, func(t *testing.T, w *world) {
		var proxies []*breakpointProxy
		for _, a := range w.agents {
			proxies = append(proxies, w.routeThroughBreakpoints(t, a, w.clusters[0]))
		}
		var dead *agent
		killAtEachPoint(t, w, proxies, func() {
			if dead != nil {
				dead.Start()
			}
			holder, _ := w.holder(t.Context())
			dead = holder
			for i, a := range w.agents { // because the stopped request is the dead agent's
				if a != dead {
					proxies[i].clearBreakpoint()
				}
			}
			dead.Kill()
		}, expectedOutcome)
		if dead != nil {
			dead.Start()
		}
	})
}

// TestServerKilledDuringOperations kills the server. The agent continues, but no caller waits for
// the outcome any more, so the history must say that it is unknown.
func TestServerKilledDuringOperations(t *testing.T) {
	runOn(t, anyDatabase(), singleAgent, func(t *testing.T, w *world) {
		p := w.routeThroughBreakpoints(t, w.agents[0], w.clusters[0])
		kill := func() {
			w.server.Kill()
			w.server.Start()
		}
		killAtEachPoint(t, w, []*breakpointProxy{p}, kill, func(operationCase, killPoint) (string, int) { return "lost", 1 })
		w.verifyReportedOutcomesSurvive(t)
	})
}

// verifyReportedOutcomesSurvive kills the server as soon as it has sent an outcome.
func (w *world) verifyReportedOutcomesSurvive(t *testing.T) {
	call := &caller{w: w, account: "account-0"}
	for n := range 5 {
		w.restartLoneAgent()
		w.awaitReady()
		o := call.newOperation("apply", "told", n, 10*time.Second)
		out := call.send(t.Context(), o, operationCases[1].body("told"))
		w.server.Kill()
		w.server.Start()
		if out.State != "done" {
			t.Errorf("%s: %+v", o, out)
		}
		(&operationLoad{caller: call}).awaitResult(t.Context(), o)
	}
}
