package rbac

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/controlplane"
)

// exercise is something that an account does in its cluster.
type exercise struct {
	name string
	// prepare creates, as the administrator, what the exercise needs.
	prepare func(t *testing.T, a *account)
	// run returns why the exercise failed.
	run func(t *testing.T, a *account) error
	// resources are those whose requests since the start of the agent belong to the exercise; nil if the requests during it do.
	resources []string
}

// forbiddenError is the failure of an exercise for lack of a right.
type forbiddenError struct{ message string }

// Error returns the message that users see.
func (e forbiddenError) Error() string { return e.message }

// exercises returns everything that an account does.
func (s scenario) exercises() []exercise {
	all := []exercise{identify, rediscover,
		{name: "discover kinds", prepare: nothing, run: func(t *testing.T, a *account) error { return a.execute(t, "discover", object{}) }},
		{name: "ask for rights", prepare: nothing, run: func(t *testing.T, a *account) error {
			return a.execute(t, "access", object{"kind": "pods", "action": "list"})
		}}}
	for _, k := range testKinds {
		if !s.has(k) {
			continue
		}
		if !k.unwatched {
			all = append(all, watchExercise(k))
		}
		all = append(all, readExercises(k)...)
		if !s.readOnly {
			all = append(all, changeExercises(k)...)
		}
		all = append(all, workloadExercises(k, s.readOnly)...)
	}
	return all
}

// identify reads what identifies the cluster, and which namespaces the account sees.
var identify = exercise{name: "identify the cluster", prepare: nothing, resources: []string{"namespaces"}, run: func(t *testing.T, a *account) error {
	var got struct {
		Cluster    struct{ UID string }
		Namespaces []string
	}
	await(t, "account "+a.name, func() bool { return getJSON(t, "/vedette/v1/accounts/"+a.name, &got) == nil })
	switch {
	case a.onlyNamespaced:
		return nil
	case got.Cluster.UID == "":
		return forbiddenError{"the cluster is identified by its address and certificate only, because kube-system is hidden"}
	case len(got.Namespaces) == 0:
		return forbiddenError{"the account does not know the cluster's namespaces"}
	}
	return nil
}}

// rediscover waits until the agent has asked to see changes of custom and of aggregated kinds.
var rediscover = exercise{name: "notice new kinds", prepare: nothing, resources: []string{"customresourcedefinitions", "apiservices"}, run: func(t *testing.T, a *account) error {
	if a.onlyNamespaced {
		return nil
	}
	for _, resource := range []string{"customresourcedefinitions", "apiservices"} {
		code := 0
		await(t, "a watch of "+resource+" by "+a.name, func() bool {
			for _, r := range requestsOf(t, a.name) {
				if r.resource() == resource && (r.Verb == "watch" || r.Response.Code == http.StatusForbidden) {
					code = r.Response.Code
					return true
				}
			}
			return false
		})
		if code == http.StatusForbidden {
			return forbiddenError{"the watch of " + resource + " is denied, so new kinds are noticed late"}
		}
	}
	return nil
}}

// watchExercise waits until a kind's feed is live.
func watchExercise(k testKind) exercise {
	return exercise{name: "watch " + k.kind, prepare: nothing, resources: []string{k.plural}, run: func(t *testing.T, a *account) error {
		state, message := "", ""
		await(t, "a feed of "+k.kind+" of "+a.name, func() bool {
			var feeds struct {
				Items []struct {
					Kind, Group, State, Message string
				}
			}
			must(t, getJSON(t, "/vedette/v1/feeds?limit=1000&account="+a.name+"&kind="+url.QueryEscape(k.kind), &feeds))
			if len(feeds.Items) == 1 {
				state, message = feeds.Items[0].State, feeds.Items[0].Message
			}
			return state == string(vedette.FeedLive) || state == string(vedette.FeedDenied)
		})
		if state == string(vedette.FeedDenied) {
			return forbiddenError{"the feed is denied: " + message}
		}
		return nil
	}}
}

func readExercises(k testKind) []exercise {
	target := func(a *account, name string) object {
		return object{"kind": k.kind, "namespace": k.namespaceOf(a.namespace), "name": k.objectName(a.namespace, name)}
	}
	return []exercise{
		{name: "get " + k.kind, prepare: k.create("read"), run: func(t *testing.T, a *account) error { return a.execute(t, "get", target(a, "read")) }},
		{name: "recache " + k.kind, prepare: k.create("read"), run: func(t *testing.T, a *account) error { return a.execute(t, "recache", target(a, "read")) }},
		{name: "list " + k.kind, prepare: nothing, run: func(t *testing.T, a *account) error {
			return a.execute(t, "list", object{"kind": k.kind, "namespace": k.namespaceOf(a.namespace)})
		}},
		{name: "events of " + k.kind, prepare: k.create("eventful"), run: func(t *testing.T, a *account) error { return a.execute(t, "events", target(a, "eventful")) }},
	}
}

func changeExercises(k testKind) []exercise {
	target := func(a *account, name string) object {
		return object{"kind": k.kind, "namespace": k.namespaceOf(a.namespace), "name": k.objectName(a.namespace, name)}
	}
	labelled := func(a *account, name string) object {
		o := k.manifest(a.namespace, k.objectName(a.namespace, name))
		o["metadata"].(object)["labels"] = object{"exercise": "changed"}
		return o
	}
	return []exercise{
		{name: "create " + k.kind, prepare: nothing, run: func(t *testing.T, a *account) error {
			return a.execute(t, "apply", object{"manifest": k.manifest(a.namespace, k.objectName(a.namespace, "created")), "strategy": "create"})
		}},
		{name: "deploy a new " + k.kind, prepare: nothing, run: func(t *testing.T, a *account) error {
			return a.execute(t, "apply", object{"manifest": k.manifest(a.namespace, k.objectName(a.namespace, "deployed"))})
		}},
		{name: "deploy a changed " + k.kind, prepare: k.create("applied"), run: func(t *testing.T, a *account) error {
			return a.execute(t, "apply", object{"manifest": labelled(a, "applied"), "strategy": "client-side"})
		}},
		{name: "apply server-side " + k.kind, prepare: k.create("merged"), run: func(t *testing.T, a *account) error {
			return a.execute(t, "apply", object{"manifest": labelled(a, "merged"), "strategy": "force-conflicts"})
		}},
		{name: "patch " + k.kind, prepare: k.create("patched"), run: func(t *testing.T, a *account) error {
			body := target(a, "patched")
			body["patch"], body["type"] = object{"metadata": object{"labels": object{"exercise": "patched"}}}, "merge"
			return a.execute(t, "patch", body)
		}},
		{name: "replace " + k.kind, prepare: k.createRunning("replaced"), run: func(t *testing.T, a *account) error {
			manifest := labelled(a, "replaced")
			if !k.withoutGet { // the API server has filled fields that must not change
				err := plane.Get(t.Context(), k.list(a.namespace)+"/"+k.objectName(a.namespace, "replaced"), &manifest)
				must(t, err)
				manifest["apiVersion"], manifest["kind"] = k.manifest("", "")["apiVersion"], k.parsed().Name
				meta := manifest["metadata"].(object)
				delete(meta, "managedFields")
				delete(meta, "resourceVersion")
				meta["labels"] = object{"name": meta["name"], "exercise": "replaced"}
			}
			return a.execute(t, "apply", object{"manifest": manifest, "strategy": "replace"})
		}},
		{name: "delete " + k.kind, prepare: k.create("deleted"), run: func(t *testing.T, a *account) error {
			body := target(a, "deleted")
			body["noWait"] = true
			return a.execute(t, "delete", body)
		}},
	}
}

// workloadExercises are operations on some kinds only.
func workloadExercises(k testKind, readOnly bool) (all []exercise) {
	on := func(verb string, fields object) func(t *testing.T, a *account) error {
		return func(t *testing.T, a *account) error {
			body := object{"kind": k.kind, "namespace": a.namespace, "name": verb}
			for key, value := range fields {
				body[key] = value
			}
			return a.execute(t, verb, body)
		}
	}
	add := func(change bool, verb string, prepare func(*testing.T, *account), fields object) {
		if !change || !readOnly {
			all = append(all, exercise{name: verb + " " + k.kind, prepare: prepare, run: on(verb, fields)})
		}
	}
	switch k.plural {
	case "deployments":
		add(true, "pause", k.create("pause"), nil)
		add(true, "resume", k.createPaused("resume"), nil)
		fallthrough
	case "statefulsets", "daemonsets":
		add(false, "history", k.createRevisions("history"), nil)
		add(false, "status", k.create("status"), nil)
		add(true, "undo", k.createRevisions("undo"), nil)
		add(true, "restart", k.create("restart"), nil)
	case "pods":
		all = append(all, exercise{name: "logs of Pod", prepare: k.createRunning("logs"), run: readLogs},
			exercise{name: "usage of a Pod", prepare: createUsage, run: func(t *testing.T, a *account) error {
				return a.execute(t, "metrics", object{"namespace": a.namespace, "name": "used"})
			}},
			exercise{name: "usage of Pods", prepare: createUsage, run: func(t *testing.T, a *account) error {
				return a.execute(t, "metrics", object{"namespace": a.namespace})
			}})
	case "configmaps", "secrets":
		all = append(all, exercise{name: "prune " + k.kind, prepare: k.createApplied("pruned"), run: func(t *testing.T, a *account) error {
			return a.execute(t, "prune", object{"kinds": []string{"core/v1/" + k.kind}, "namespaces": []string{a.namespace}, "labelSelector": "name=pruned"})
		}})
		all = append(all, exercise{name: "version of " + k.kind, prepare: k.create("versioned-v000"), run: func(t *testing.T, a *account) error {
			return a.execute(t, "version", object{"manifest": k.manifest(a.namespace, "versioned")})
		}})
	}
	switch k.plural {
	case "deployments", "statefulsets", "replicasets":
		add(true, "scale", k.create("scale"), object{"replicas": 0})
	}
	return all
}

func nothing(*testing.T, *account) {}

// create returns what creates an object of the kind.
func (k testKind) create(name string) func(t *testing.T, a *account) {
	return func(t *testing.T, a *account) {
		t.Helper()
		ensure(t, k.list(a.namespace), k.manifest(a.namespace, k.objectName(a.namespace, name)))
	}
}

// createApplied creates an object as kubectl apply does, so that it is pruned.
func (k testKind) createApplied(name string) func(t *testing.T, a *account) {
	return func(t *testing.T, a *account) {
		t.Helper()
		o := k.manifest(a.namespace, name)
		o["metadata"].(object)["annotations"] = object{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
		ensure(t, k.list(a.namespace), o)
	}
}

func (k testKind) createPaused(name string) func(t *testing.T, a *account) {
	return func(t *testing.T, a *account) {
		t.Helper()
		k.create(name)(t, a)
		must(t, plane.Patch(t.Context(), k.list(a.namespace)+"/"+name, object{"spec": object{"paused": true}}))
	}
}

// createRevisions creates a workload with two revisions.
func (k testKind) createRevisions(name string) func(t *testing.T, a *account) {
	return func(t *testing.T, a *account) {
		t.Helper()
		path := k.list(a.namespace) + "/" + name
		isObserved := func(o controlplane.Object) bool {
			status, _ := o["status"].(object)
			return status["observedGeneration"] == o["metadata"].(object)["generation"]
		}
		k.create(name)(t, a)
		must(t, plane.Await(t.Context(), path, isObserved))
		must(t, plane.Patch(t.Context(), path, object{"spec": object{"template": object{"metadata": object{"annotations": object{"revision": "2"}}}}}))
		must(t, plane.Await(t.Context(), path, isObserved))
	}
}

// createRunning creates an object, and waits until it runs if it is a pod.
func (k testKind) createRunning(name string) func(t *testing.T, a *account) {
	return func(t *testing.T, a *account) {
		t.Helper()
		k.create(name)(t, a)
		if k.plural != "pods" {
			return
		}
		must(t, plane.Await(t.Context(), k.list(a.namespace)+"/"+name, func(o controlplane.Object) bool {
			status, _ := o["status"].(object)
			return status["phase"] == "Running"
		}))
	}
}

func createUsage(t *testing.T, a *account) {
	t.Helper()
	ensure(t, "/apis/metrics.k8s.io/v1beta1/namespaces/"+a.namespace+"/pods", object{"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics",
		"metadata": object{"name": "used"}, "containers": []any{object{"name": "main", "usage": object{"cpu": "1m"}}}})
}

func readLogs(t *testing.T, a *account) error {
	executed[vedette.VerbLogs] = true
	resp, err := http.Get(rest + "/vedette/v1/logs?account=" + a.name + "&namespace=" + a.namespace + "&pod=logs")
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	switch {
	case strings.Contains(string(body), "forbidden"):
		return forbiddenError{string(body)}
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	return nil
}

// executed are the verbs of operations that some exercise has.
var executed = map[vedette.Verb]bool{}

// execute executes an operation on the account.
func (a *account) execute(t *testing.T, verb string, body object) error {
	t.Helper()
	executed[vedette.Verb(verb)] = true
	body["account"], body["verb"] = a.name, verb
	var out struct {
		State, Reason, Message string
		Status                 int
		Error                  struct{ Message string }
	}
	raw, err := json.Marshal(body)
	must(t, err)
	resp, err := http.Post(rest+"/vedette/v1/operations", "application/json", strings.NewReader(string(raw)))
	must(t, err)
	defer resp.Body.Close()
	must(t, json.NewDecoder(resp.Body).Decode(&out))
	switch {
	case out.State == string(vedette.Done):
		return nil
	case out.Status == http.StatusForbidden:
		return forbiddenError{out.Message}
	}
	return fmt.Errorf("%s %d %s: %s%s", out.State, out.Status, out.Reason, out.Message, out.Error.Message)
}

// isForbidden reports whether an exercise failed for lack of a right.
func isForbidden(err error) bool {
	_, is := errors.AsType[forbiddenError](err)
	return is
}
