package convergence

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
)

// moment is when something dies, seen from the agent's request to the API server.
type moment struct {
	name            string
	passed, answers bool
	happened        int // how often the request took place before
}

var moments = []moment{
	{"before the request is sent", false, false, 0},
	{"before its answer comes", true, false, 1},
	{"before its answer is passed on", true, true, 1},
}

// deed is an operation of a verb, on an object of its own.
type deed struct {
	name string
	kind kind
	body func(name string) object
	// again says that it may be given to another process: it is done then, though
	// the first one may have done it.
	again bool
}

var deploymentKind = kind{"apps", "v1", "Deployment", "deployments", true, replicated}

var deeds = []deed{
	{"create", configMap, func(name string) object {
		return object{"verb": "apply", "strategy": "create", "manifest": object{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": object{"generateName": "made-", "namespace": namespaces[0], "labels": object{"order": name}}}}
	}, false},
	{"apply", configMap, func(name string) object {
		return object{"verb": "apply", "manifest": object{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": object{"name": name, "namespace": namespaces[0], "annotations": object{"done": "yes"}}}}
	}, true},
	{"patch", configMap, func(name string) object {
		return aimed("patch", "configmap", name, object{"type": "merge", "patch": object{"metadata": object{"annotations": object{"done": "yes"}}}})
	}, true},
	{"JSON patch", configMap, func(name string) object {
		return aimed("patch", "configmap", name, object{"type": "json", "patch": []object{{"op": "add", "path": "/metadata/annotations", "value": object{"done": "yes"}}}})
	}, false},
	{"scale", deploymentKind, func(name string) object { return aimed("scale", "deployment", name, object{"replicas": 5}) }, true},
	{"restart", deploymentKind, func(name string) object { return aimed("restart", "deployment", name, nil) }, false},
	{"delete", configMap, func(name string) object { return aimed("delete", "configmap", name, nil) }, true},
	{"delete if there", configMap, func(name string) object { return aimed("delete", "configmap", name, object{"missingOk": true}) }, true},
}

// aimed is an operation on one object.
func aimed(verb, kind, name string, more object) object {
	body := object{"verb": verb, "kind": kind, "namespace": namespaces[0], "name": name}
	for field, value := range more {
		body[field] = value
	}
	return body
}

// took reports how often a deed took place.
func (d deed) took(t *testing.T, c *cluster, name string) int {
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
	if err := c.Get(t.Context(), d.kind.list(namespaces[0]), &list); err != nil {
		t.Fatal(err)
	}
	n, there := 0, 0
	for _, i := range list.Items {
		switch m := i.Metadata; {
		case m.Labels["order"] == name:
			n++
		case m.Name == name && (m.Annotations["done"] != "" || m.Generation > 1):
			n++
			there++
		case m.Name == name:
			there++
		}
	}
	if d.name == "delete" || d.name == "delete if there" {
		return 1 - there
	}
	return n
}

// lastMoments has operations sent and lets something die at each moment of each.
func lastMoments(t *testing.T, w *world, doors []*door, die func(), want func(deed, moment) (state string, most int)) {
	c, call := w.clusters[0], &caller{w: w, account: "account-0"}
	for _, d := range deeds {
		for i, m := range moments {
			name := strings.ToLower(fmt.Sprintf("m-%s-%d", ulid.Make().String()[20:], i))
			if d.name != "create" && d.name != "apply" {
				o := object{"apiVersion": d.kind.apiVersion(), "kind": d.kind.name, "metadata": object{"name": name}}
				if d.kind.spec != nil {
					o["spec"] = d.kind.spec(name)["spec"]
				}
				if err := c.Create(t.Context(), d.kind.list(namespaces[0]), o); err != nil {
					t.Fatal(err)
				}
			}
			w.anew()
			w.ready()
			o := call.order(d.body(name)["verb"].(string), name, i, 15*time.Second)
			var stops []*stop
			reached := make(chan struct{}, len(doors))
			for _, door := range doors {
				s := door.next(m.passed, m.answers)
				stops = append(stops, s)
				go func() { <-s.reached; reached <- struct{}{} }()
			}
			holder, _ := w.holder(t.Context())
			before := holder.starts
			passed := make(<-chan struct{})
			if m.answers {
				passed = holder.link.HoldAt(o.id)
			}
			told := make(chan outcome, 1)
			go func() { told <- call.send(t.Context(), o, d.body(name)) }()
			await(t, reached, d.name+" "+m.name)
			if m.answers {
				await(t, passed, d.name+" "+m.name)
			}
			if die(); holder.starts == before && holder.running() { // the request of one that is dead ends with its connection
				for _, s := range stops {
					close(s.goOn)
				}
			}
			holder.link.Cut()
			holder.link.Heal()
			out := <-told
			state, effects := want(d, m)
			if out.State != state {
				t.Errorf("%s, killed %s: it is %q (%d %s), and %q was due", d.name, m.name, out.State, out.Status, out.Message, state)
			}
			took := -1
			w.within(10*time.Second, func(context.Context) bool { took = d.took(t, c, name); return took == effects })
			if took != effects {
				t.Errorf("%s, killed %s: it took place %d times, and %d was due", d.name, m.name, took, effects)
			}
			(&errands{caller: call}).settled(t.Context(), o)
			for _, door := range doors {
				door.clear()
			}
		}
	}
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: the moment did not come", what)
	}
}

// clear forgets a stop that nothing came by.
func (d *door) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop = nil
}

// anew starts an agent again that is alone with a server that was killed: after many
// connections that soon were lost it would wait long before the next.
func (w *world) anew() {
	if a := w.agents[0]; len(w.agents) == 1 && w.server.starts > 1 {
		a.kill()
		a.start()
	}
}

// ready waits until an agent that holds the account takes operations.
func (w *world) ready() {
	w.t.Helper()
	probe := &caller{w: w, account: "account-0"}
	var last *order
	if !w.within(patience, func(ctx context.Context) bool {
		a, _ := w.holder(ctx)
		if a == nil {
			return false
		}
		last = probe.order("discover", "", 0, 2*time.Second)
		return probe.send(ctx, last, nil).State == "done"
	}) {
		w.t.Fatalf("no agent takes operations: %s, %+v", last.last, last.outcome())
	}
}

// vacant waits until the server knows that no agent serves the account: until then
// it gives operations to one that is dead, and can't know what became of them.
func (w *world) vacant() {
	w.t.Helper()
	if !w.within(patience, func(ctx context.Context) bool { a, _ := w.holder(ctx); return a == nil }) {
		w.t.Fatal("the server still takes a dead agent for alive")
	}
}

// whatIsDue is the table: what another process may be given is done; of the rest it
// is unknown whether it took effect.
func whatIsDue(d deed, m moment) (string, int) {
	if d.again { // a delete too, which may find nothing the second time
		return "done", 1
	}
	return "lost", m.happened
}

// TestAgentDiesWithOperations kills the agent at each moment of operations of each
// verb, and starts it again.
func TestAgentDiesWithOperations(t *testing.T) {
	on(t, anyDatabase(), lone, func(t *testing.T, w *world) {
		a := w.agents[0]
		d := w.through(t, a, w.clusters[0])
		lastMoments(t, w, []*door{d}, func() { a.kill(); a.start() }, whatIsDue)
	})
}

// TestStandbyTakesOperations kills the agent that holds the account, and leaves it to
// the other one.
func TestStandbyTakesOperations(t *testing.T) {
	on(t, anyDatabase(), pair, func(t *testing.T, w *world) {
		var doors []*door
		for _, a := range w.agents {
			doors = append(doors, w.through(t, a, w.clusters[0]))
		}
		var dead *agent
		lastMoments(t, w, doors, func() {
			if dead != nil {
				dead.start()
			}
			holder, _ := w.holder(t.Context())
			dead = holder
			for i, a := range w.agents { // the request that is stopped is the dead one's
				if a != dead {
					doors[i].clear()
				}
			}
			dead.kill()
		}, whatIsDue)
		if dead != nil {
			dead.start()
		}
	})
}

// TestServerDiesWithOperations kills the server. The agent goes on, and what it did
// nobody waits for any more: the history says that it is unknown.
func TestServerDiesWithOperations(t *testing.T) {
	on(t, anyDatabase(), lone, func(t *testing.T, w *world) {
		d := w.through(t, w.agents[0], w.clusters[0])
		die := func() {
			w.server.kill()
			w.server.start()
		}
		lastMoments(t, w, []*door{d}, die, func(deed, moment) (string, int) { return "lost", 1 })
		w.whatWasToldStays(t)
	})
}

// whatWasToldStays kills the server as soon as it has told an outcome.
func (w *world) whatWasToldStays(t *testing.T) {
	call := &caller{w: w, account: "account-0"}
	for n := range 5 {
		w.anew()
		w.ready()
		o := call.order("apply", "told", n, 10*time.Second)
		out := call.send(t.Context(), o, deeds[1].body("told"))
		w.server.kill()
		w.server.start()
		if out.State != "done" {
			t.Errorf("%s: %+v", o, out)
		}
		(&errands{caller: call}).settled(t.Context(), o)
	}
}
