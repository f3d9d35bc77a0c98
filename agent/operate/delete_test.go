//go:build linux

package operate_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

func TestOnlySelectedObjectsAreDeleted(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	uids := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		o := configMap(name, nil)
		o["metadata"].(object)["labels"] = object{"pick": map[bool]string{true: "yes", false: "no"}[name != "c"]}
		b.apply(vedette.StrategyDefault, o)
		uids[name] = dig(b.live(core, "configmaps", name), "metadata", "uid").(string)
	}
	out := b.mustExecute(vedette.DeleteArgs{Target: b.target("configmap", ""), LabelSelector: "pick=yes"})
	var names []string
	for i, k := range out.Keys {
		names = append(names, k.Name)
		if len(out.UIDs) != len(out.Keys) || out.UIDs[i] != uids[k.Name] {
			t.Errorf("uid of %s: got one of %v, want %v", k.Name, out.UIDs, uids[k.Name])
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("deleted: got %v", names)
	}
	b.wantFailure(vedette.GetArgs{Target: b.target("configmap", "a")}, 404)
	b.wantFailure(vedette.DeleteArgs{Target: b.target("configmap", "a")}, 404, `"a" not found`)
	if out := b.mustExecute(vedette.DeleteArgs{Target: b.target("configmap", "a"), MissingOK: true}); len(out.Keys) != 0 {
		t.Errorf("deleted: got %v, want nothing", out.Keys)
	}
	for _, selector := range []string{"", " \t", "\x00", "pick=no\x00,never=this"} {
		b.wantFailure(vedette.DeleteArgs{Target: b.target("configmap", ""), LabelSelector: selector}, 400, "every configmap")
	}
	b.wantFailure(vedette.DeleteArgs{Target: b.target("configmap", ""), LabelSelector: "a=,=b"}, 400, "found '='")
	b.wantFailure(vedette.DeleteArgs{Target: b.target("configmap", "c"), Propagation: "sideways"}, 400, "sideways")
	b.mustExecute(vedette.GetArgs{Target: b.target("configmap", "c")})
}

func TestDeleteTimeoutNamesFinalizers(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	o := configMap("stuck", nil)
	o["metadata"].(object)["finalizers"] = []any{"example.com/never"}
	b.apply(vedette.StrategyDefault, o)
	out := b.executeBriefly(vedette.DeleteArgs{Target: b.target("cm", "stuck")},
		func(out vedette.Outcome) bool {
			return len(out.UIDs) > 0 && strings.Contains(out.Message, "example.com/never")
		})
	if out.State != vedette.Failed || out.Status != 504 {
		t.Errorf("got %+v", out)
	}
	if len(out.UIDs) != 1 || out.UIDs[0] != dig(b.live(core, "configmaps", "stuck"), "metadata", "uid") {
		t.Errorf("uids of an object that is being deleted: got %v", out.UIDs)
	}
	for _, words := range []string{"example.com/never", "stuck", "not gone"} {
		b.wantContains(out.Message, words)
	}
	b.mustExecute(vedette.DeleteArgs{Target: b.target("cm", "stuck"), NoWait: true})
	must(t, plane.Patch(t.Context(), b.path(core, "configmaps", "stuck"), object{"metadata": object{"finalizers": nil}}))
}

func TestOnlyOrphanKeepsDependents(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	for policy, kept := range map[string]bool{"Orphan": true, "orphan": true, "FOREGROUND": false, "Background": false, "": false} {
		b.apply(vedette.StrategyDefault, deploymentManifest("d", []any{object{"name": "main", "image": "example.com/m"}}, nil))
		replicaSets := b.path(apps, "replicasets", "")
		var uid string
		must(t, plane.Await(t.Context(), replicaSets, func(list object) bool {
			uid, _ = dig(list, "items", 0, "metadata", "uid").(string)
			return uid != ""
		}))
		b.mustExecute(vedette.DeleteArgs{Target: b.target("deployment", "d"), Propagation: policy})
		if kept {
			rs := dig(b.live(apps, "replicasets", ""), "items", 0)
			if dig(rs, "metadata", "uid") != uid || dig(rs, "metadata", "ownerReferences") != nil {
				t.Errorf("propagation %q: got %v", policy, dig(rs, "metadata"))
			}
			b.mustExecute(vedette.DeleteArgs{Target: b.target("rs", dig(rs, "metadata", "name").(string))})
		}
		must(t, plane.Await(t.Context(), replicaSets, func(list object) bool { return dig(list, "items", 0) == nil }))
	}
}

func TestDeleteGracePeriod(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.startPod("p")
	none := int64(0)
	out := b.mustExecute(vedette.DeleteArgs{Target: b.target("pod", "p"), GraceSeconds: &none})
	if len(out.Keys) != 1 || out.Keys[0] != (vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: b.namespace, Name: "p"}) {
		t.Errorf("deleted: got %v", out.Keys)
	}
	b.wantFailure(vedette.GetArgs{Target: b.target("pod", "p")}, 404)
	b.apply(vedette.StrategyDefault, object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "q"}, "spec": object{
		"nodeName": "nowhere", "containers": []any{object{"name": "main", "image": "example.com/m"}}}}) // nobody ends it
	long := int64(7)
	b.mustExecute(vedette.DeleteArgs{Target: b.target("pod", "q"), GraceSeconds: &long, NoWait: true})
	if got := dig(b.live(core, "pods", "q"), "metadata", "deletionGracePeriodSeconds"); got != float64(7) {
		t.Errorf("grace period: got %v", got)
	}
	out = b.executeBriefly(vedette.DeleteArgs{Target: b.target("pod", "q")}, func(out vedette.Outcome) bool { return strings.Contains(out.Message, "grace period is") })
	if out.State != vedette.Failed || out.Status != 504 {
		t.Errorf("pod that does not end: got %+v", out)
	}
	b.wantContains(out.Message, "grace period is")
}

// requestLog is a testbed that records the requests to the API server, except discovery. It aborts
// the responses to the first deletions.
type requestLog struct {
	*testbed
	mu           sync.Mutex
	methods      []string
	abortDeletes int
}

func newRequestLog(t *testing.T) *requestLog {
	s := &requestLog{}
	s.testbed = newProxyTestbed(t, func(_ http.ResponseWriter, r *http.Request, backend http.Handler) bool {
		if !strings.Contains(r.URL.Path, "/namespaces/t-") {
			return false
		}
		s.mu.Lock()
		s.methods = append(s.methods, r.Method)
		aborted := r.Method == http.MethodDelete && s.abortDeletes > 0
		if aborted {
			s.abortDeletes--
		}
		s.mu.Unlock()
		if aborted {
			backend.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		return false
	})
	return s
}

// takeMethods returns the methods of the requests since the last call.
func (s *requestLog) takeMethods() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	methods := strings.Join(s.methods, " ")
	s.methods = nil
	return methods
}

func (s *requestLog) create(o object) (uid string) {
	s.Helper()
	out := s.apply(vedette.StrategyCreateOnly, o)
	s.takeMethods()
	return dig(decode(s, out.Objects[0]), "metadata", "uid").(string)
}

// TestDeleteByUID checks which requests a known uid saves, and what happens if it is out of date.
func TestDeleteByUID(t *testing.T) {
	s := newRequestLog(t)
	unknownUID := "00000000-0000-0000-0000-000000000000"
	s.createCustomKind("Thing", "things")
	withFinalizer := func(name string) object {
		o := configMap(name, nil)
		o["metadata"].(object)["finalizers"] = []any{"example.com/never"}
		return o
	}
	for _, tt := range []struct {
		name    string
		kind    string
		object  object // nil for none
		args    vedette.DeleteArgs
		stale   bool // the uid is another object's
		methods string
		uid     bool // the outcome has it
		absent  bool // and up to which version the object is gone
		status  int
	}{
		{name: "known", kind: "configmap", object: configMap("a", nil), methods: "DELETE", uid: true},
		{name: "a Secret", kind: "secret", object: secretManifest("a"), methods: "DELETE", uid: true},
		{name: "of a custom kind", kind: "thing." + s.customGroup(), object: object{"apiVersion": s.customGroup() + "/v1", "kind": "Thing", "metadata": object{"name": "a"}}, methods: "DELETE", uid: true},
		{name: "unwaited for", kind: "configmap", object: configMap("b", nil), args: vedette.DeleteArgs{NoWait: true}, methods: "DELETE", uid: true},
		{name: "another one has the name", kind: "configmap", object: configMap("c", nil), stale: true, methods: "DELETE GET DELETE", uid: true, absent: true},
		{name: "another one has the name, which is spared", kind: "configmap", object: configMap("d", nil), stale: true,
			args: vedette.DeleteArgs{OnlyKnown: true, MissingOK: true}, methods: "DELETE", status: 409},
		{name: "gone", kind: "configmap", stale: true, methods: "DELETE GET", status: 404, absent: true},
		{name: "gone, which may be", kind: "configmap", stale: true, args: vedette.DeleteArgs{MissingOK: true}, methods: "DELETE GET", uid: true, absent: true},
		{name: "what others have to let go of", kind: "configmap", object: withFinalizer("e"), args: vedette.DeleteArgs{NoWait: true}, methods: "DELETE", uid: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name, uid := "none", unknownUID
			if tt.object != nil {
				uid = s.create(tt.object)
				name = dig(tt.object, "metadata", "name").(string)
			}
			tt.args.Target, tt.args.KnownUID = s.target(tt.kind, name), uid
			if tt.stale {
				tt.args.KnownUID = unknownUID
			}
			out := s.execute(tt.args)
			if methods := s.takeMethods(); methods != tt.methods {
				t.Errorf("requests: got %s, want %s", methods, tt.methods)
			}
			if out.State == vedette.Done == (tt.status != 0) || tt.status != 0 && out.Status != tt.status {
				t.Errorf("got %s %d %s", out.State, out.Status, out.Message)
			}
			if named := len(out.UIDs) == 1 && out.UIDs[0] == uid && len(out.Keys) == 1; named != tt.uid {
				t.Errorf("got keys %v and uids %v, want uid %s: %v", out.Keys, out.UIDs, uid, tt.uid)
			}
			if (out.Absent != nil) != tt.absent || tt.absent && (out.Absent.Version == "" || out.Absent.Key.Namespace != s.namespace || out.Absent.Key.Name != name) {
				t.Errorf("got absence %v, want one: %v", out.Absent, tt.absent)
			}
		})
	}
	s.mustExecute(vedette.GetArgs{Target: s.target("configmap", "d")})
	must(t, plane.Patch(t.Context(), s.path(core, "configmaps", "e"), object{"metadata": object{"finalizers": nil}}))
}

// TestDeleteByUIDRetriesLostAnswer aborts the response to a deletion that took effect.
func TestDeleteByUIDRetriesLostAnswer(t *testing.T) {
	s := newRequestLog(t)
	uid := s.create(configMap("a", nil))
	s.abortDeletes = 1
	out := s.mustExecute(vedette.DeleteArgs{Target: s.target("configmap", "a"), KnownUID: uid})
	if methods := s.takeMethods(); methods != "DELETE DELETE GET" || len(out.UIDs) != 1 || out.UIDs[0] != uid {
		t.Errorf("got requests %s and uids %v", methods, out.UIDs)
	}
}

// TestDeleteByUIDSparesNewObject creates the object again between a deletion whose response is lost
// and its retry.
func TestDeleteByUIDSparesNewObject(t *testing.T) {
	var b *testbed
	lost := false
	b = newProxyTestbed(t, func(_ http.ResponseWriter, r *http.Request, backend http.Handler) bool {
		if lost || r.Method != http.MethodDelete {
			return false
		}
		lost = true
		backend.ServeHTTP(httptest.NewRecorder(), r)
		must(t, plane.Create(t.Context(), b.path(core, "configmaps", ""), configMap("a", object{"anew": "yes"})))
		panic(http.ErrAbortHandler)
	})
	uid := dig(decode(t, b.apply(vedette.StrategyCreateOnly, configMap("a", nil)).Objects[0]), "metadata", "uid").(string)
	out := b.execute(vedette.DeleteArgs{Target: b.target("configmap", "a"), KnownUID: uid})
	if out.State != vedette.Lost {
		t.Errorf("got %s %d %s", out.State, out.Status, out.Message)
	}
	if dig(b.live(core, "configmaps", "a"), "data", "anew") != "yes" {
		t.Error("the object that was created later is gone too")
	}
}

// TestDeleteKnowsSinceWhenAnObjectIsGone deletes what is missing, while others create and delete an object of that name.
func TestDeleteKnowsSinceWhenAnObjectIsGone(t *testing.T) {
	version := func(o object) uint64 {
		n, err := strconv.ParseUint(dig(o, "metadata", "resourceVersion").(string), 10, 64)
		must(t, err)
		return n
	}
	var b *testbed
	var before func(*http.Request)
	var refused, answer string
	b = newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		isList := r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps")
		if before != nil && isList {
			before(r)
		}
		if isList && refused != "" {
			http.Error(w, refused, http.StatusForbidden)
			return true
		}
		if isList && answer != "" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(answer))
			return true
		}
		return false
	})
	path := b.path(core, "configmaps", "a")
	create := func() object {
		must(t, plane.Create(t.Context(), b.path(core, "configmaps", ""), configMap("a", nil)))
		return b.live(core, "configmaps", "a")
	}
	remove := func() vedette.Outcome {
		return b.execute(vedette.DeleteArgs{Target: b.target("configmap", "a"), MissingOK: true})
	}
	gone := create()
	must(t, plane.Delete(t.Context(), path))
	out := remove()
	if out.State != vedette.Done || len(out.Keys) != 0 || out.Absent == nil {
		t.Fatalf("got %+v, want nothing deleted and an absence", out)
	}
	if n, err := strconv.ParseUint(out.Absent.Version, 10, 64); err != nil || n <= version(gone) {
		t.Errorf("absent at %s, %v, want after the last version of the object, %d", out.Absent.Version, err, version(gone))
	}

	tries := 0
	var created object
	before = func(*http.Request) {
		if tries++; tries == 1 {
			created = create()
		}
	}
	out = remove()
	if out.State != vedette.Done || len(out.UIDs) != 1 || out.UIDs[0] != dig(created, "metadata", "uid") || out.Absent == nil || out.Absent.Version != dig(created, "metadata", "resourceVersion") {
		t.Errorf("an object that is created meanwhile: got %+v, absent %v, want %v deleted", out, out.Absent, dig(created, "metadata"))
	}

	before = func(*http.Request) { create() }
	out = b.execute(vedette.DeleteArgs{Target: b.target("configmap", "a"), MissingOK: true, OnlyKnown: true, KnownUID: "0-0"})
	if out.State != vedette.Done || out.Absent != nil {
		t.Errorf("an object that is created after the known one was gone: got %+v, absent %v, want it left alone", out, out.Absent)
	}
	b.live(core, "configmaps", "a")
	must(t, plane.Delete(t.Context(), path))

	before = nil
	refused = "no"
	if out := remove(); out.State != vedette.Done || out.Absent != nil {
		t.Errorf("an agent that may not list: got %+v", out)
	}
	refused = ""
	for name, document := range map[string]string{
		"another document": `{"kind":"Status","metadata":{"resourceVersion":"99"},"items":[]}`,
		"half a list":      `{"kind":"ConfigMapList","metadata":{"resourceVersion":"99","continue":"x"},"items":[]}`,
		"no version":       `{"kind":"ConfigMapList","metadata":{},"items":[]}`,
		"no items":         `{"kind":"ConfigMapList","metadata":{"resourceVersion":"99"}}`,
		"no JSON":          `<html>`,
	} {
		answer = document
		if out := remove(); out.State != vedette.Done || out.Absent != nil {
			t.Errorf("%s: got %+v, absent %v, want that nothing is known", name, out, out.Absent)
		}
	}
	answer = ""
	if out := b.execute(vedette.RecacheArgs{Target: b.target("configmap", "a")}); out.State != vedette.Failed || out.Status != http.StatusNotFound || out.Absent == nil {
		t.Errorf("recache of what is gone: got %+v, absent %v", out, out.Absent)
	}
	if out := b.execute(vedette.DeleteArgs{Target: b.target("configmap", "a")}); out.State != vedette.Failed || out.Status != http.StatusNotFound || out.Absent == nil {
		t.Errorf("an object that must exist: got %+v, absent %v", out, out.Absent)
	}
}

// TestScaledObjectIsGone deletes an object between the request that scales it and the one that reads it.
func TestScaledObjectIsGone(t *testing.T) {
	var b *testbed
	isScaled, isHidden := false, false
	b = newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		isRead := r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/deployments/web")
		switch {
		case strings.HasSuffix(r.URL.Path, "/scale"):
			isScaled = true
		case isRead && isHidden:
			http.Error(w, "no", http.StatusForbidden)
			return true
		case isRead && isScaled:
			isScaled = false
			path := b.path(apps, "deployments", "web")
			must(t, plane.Delete(t.Context(), path))
			for plane.Get(t.Context(), path+"?resourceVersion=0", nil) == nil { // until the API server's memory knows it, too
				if t.Context().Err() != nil {
					break
				}
			}
		}
		return false
	})
	b.apply(vedette.StrategyDefault, deploymentManifest("web", []any{object{"name": "main", "image": "example.com/m"}}, nil))
	before := dig(b.live(apps, "deployments", "web"), "metadata", "resourceVersion").(string)
	out := b.mustExecute(vedette.ScaleArgs{Target: b.target("deployment", "web"), Replicas: 0})
	if out.CacheObject != nil || out.Absent == nil || out.Absent.Key.Name != "web" || len(out.Absent.Version) < len(before) || out.Absent.Version <= before {
		t.Errorf("got object %v, absent %v, want that it is gone at a version after %s", out.CacheObject, out.Absent, before)
	}
	b.apply(vedette.StrategyDefault, deploymentManifest("web", []any{object{"name": "main", "image": "example.com/m"}}, nil))
	isHidden = true
	out = b.mustExecute(vedette.ScaleArgs{Target: b.target("deployment", "web"), Replicas: 0})
	if out.Absent != nil {
		t.Errorf("an object that cannot be read: got absent %v, want that nothing is known", out.Absent)
	}
}

// TestDeleteBySelectorSparesNewObject creates an object again, without the labels that selected it,
// before its deletion is requested.
func TestDeleteBySelectorSparesNewObject(t *testing.T) {
	var b *testbed
	swapped := false
	b = newProxyTestbed(t, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !swapped && r.Method == http.MethodDelete {
			swapped = true
			must(t, plane.Delete(t.Context(), b.path(core, "configmaps", "a")))
			must(t, plane.Create(t.Context(), b.path(core, "configmaps", ""), configMap("a", object{"anew": "yes"})))
		}
		return false
	})
	selected := configMap("a", nil)
	selected["metadata"].(object)["labels"] = object{"old": "yes"}
	uid := dig(decode(t, b.apply(vedette.StrategyCreateOnly, selected).Objects[0]), "metadata", "uid").(string)
	out := b.mustExecute(vedette.DeleteArgs{Target: b.target("configmap", ""), LabelSelector: "old=yes"})
	if !swapped || dig(b.live(core, "configmaps", "a"), "data", "anew") != "yes" {
		t.Error("the new object with the same name is gone")
	}
	if len(out.UIDs) != 1 || out.UIDs[0] != uid {
		t.Errorf("uids: got %v, want %s", out.UIDs, uid)
	}
}

// TestDeleteOfRemovedKind checks that the 404 of a kind is not taken for that of an object.
func TestDeleteOfRemovedKind(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createCustomKind("Thing", "things")
	b.apply(vedette.StrategyCreateOnly, object{"apiVersion": b.customGroup() + "/v1", "kind": "Thing", "metadata": object{"name": "a"}})
	target := vedette.Target{Kind: "Thing", APIVersion: b.customGroup() + "/v1", Namespace: b.namespace, Name: "a"}
	b.mustExecute(vedette.GetArgs{Target: target})
	must(t, plane.Delete(t.Context(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things."+b.customGroup()))
	must(t, plane.Await(t.Context(), "/apis", func(o object) bool { return !strings.Contains(string(encode(t, o)), b.customGroup()) }))
	if out := b.execute(vedette.DeleteArgs{Target: target, KnownUID: "u", MissingOK: true}); len(out.UIDs) != 0 {
		t.Errorf("uids after the kind was deleted: got %v", out.UIDs)
	}
}
