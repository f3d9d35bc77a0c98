//go:build linux

package operate_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

func TestDelete(t *testing.T) {
	b := newBench(t, operate.Config{})
	uids := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		o := configMap(name, nil)
		o["metadata"].(object)["labels"] = object{"pick": map[bool]string{true: "yes", false: "no"}[name != "c"]}
		b.apply(vedette.ByMode, o)
		uids[name] = dig(b.live(core, "configmaps", name), "metadata", "uid").(string)
	}
	out := b.done(vedette.DeleteArgs{Target: b.target("configmap", ""), LabelSelector: "pick=yes"})
	var names []string
	for i, k := range out.Keys {
		names = append(names, k.Name)
		if len(out.UIDs) != len(out.Keys) || out.UIDs[i] != uids[k.Name] {
			t.Errorf("the uid of %s is one of %v, want %v", k.Name, out.UIDs, uids[k.Name])
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("deleted %v", names)
	}
	b.fails(vedette.GetArgs{Target: b.target("configmap", "a")}, 404)
	b.fails(vedette.DeleteArgs{Target: b.target("configmap", "a")}, 404, `"a" not found`)
	if out := b.done(vedette.DeleteArgs{Target: b.target("configmap", "a"), MissingOK: true}); len(out.Keys) != 0 {
		t.Errorf("deleted %v, which was not there", out.Keys)
	}
	for _, selector := range []string{"", " \t", "\x00", "pick=no\x00,never=this"} {
		b.fails(vedette.DeleteArgs{Target: b.target("configmap", ""), LabelSelector: selector}, 400, "every configmap")
	}
	b.fails(vedette.DeleteArgs{Target: b.target("configmap", ""), LabelSelector: "a=,=b"}, 400, "found '='")
	b.fails(vedette.DeleteArgs{Target: b.target("configmap", "c"), Propagation: "sideways"}, 400, "sideways")
	b.done(vedette.GetArgs{Target: b.target("configmap", "c")})
}

func TestDeleteSaysWhichFinalizersItWaitsFor(t *testing.T) {
	b := newBench(t, operate.Config{})
	o := configMap("stuck", nil)
	o["metadata"].(object)["finalizers"] = []any{"example.com/never"}
	b.apply(vedette.ByMode, o)
	began := time.Now()
	out := b.op.Do(t.Context(), vedette.Operation{Deadline: time.Now().Add(2 * time.Second),
		Args: vedette.DeleteArgs{Target: b.target("cm", "stuck")}})
	if out.State != vedette.Failed || out.Status != 504 || time.Since(began) > 2*time.Second {
		t.Errorf("after %v: %+v", time.Since(began), out)
	}
	if len(out.UIDs) != 1 || out.UIDs[0] != dig(b.live(core, "configmaps", "stuck"), "metadata", "uid") {
		t.Errorf("what is being deleted has the uids %v", out.UIDs)
	}
	for _, words := range []string{"example.com/never", "stuck", "not gone"} {
		b.contains(out.Message, words)
	}
	b.done(vedette.DeleteArgs{Target: b.target("cm", "stuck"), NoWait: true})
	must(t, plane.Patch(t.Context(), b.path(core, "configmaps", "stuck"), object{"metadata": object{"finalizers": nil}}))
}

func TestPropagation(t *testing.T) {
	b := newBench(t, operate.Config{})
	for policy, kept := range map[string]bool{"Orphan": true, "orphan": true, "FOREGROUND": false, "Background": false, "": false} {
		b.apply(vedette.ByMode, crew("d", []any{object{"name": "main", "image": "example.com/m"}}, nil))
		replicaSets := b.path(apps, "replicasets", "")
		var uid string
		must(t, plane.Await(t.Context(), replicaSets, func(list object) bool {
			uid, _ = dig(list, "items", 0, "metadata", "uid").(string)
			return uid != ""
		}))
		b.done(vedette.DeleteArgs{Target: b.target("deployment", "d"), Propagation: policy})
		if kept {
			rs := dig(b.live(apps, "replicasets", ""), "items", 0)
			if dig(rs, "metadata", "uid") != uid || dig(rs, "metadata", "ownerReferences") != nil {
				t.Errorf("%q left %v", policy, dig(rs, "metadata"))
			}
			b.done(vedette.DeleteArgs{Target: b.target("rs", dig(rs, "metadata", "name").(string))})
		}
		must(t, plane.Await(t.Context(), replicaSets, func(list object) bool { return dig(list, "items", 0) == nil }))
	}
}

func TestGrace(t *testing.T) {
	b := newBench(t, operate.Config{})
	b.running("p")
	none := int64(0)
	out := b.done(vedette.DeleteArgs{Target: b.target("pod", "p"), GraceSeconds: &none})
	if len(out.Keys) != 1 || out.Keys[0] != (vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: b.namespace, Name: "p"}) {
		t.Errorf("deleted %v", out.Keys)
	}
	b.fails(vedette.GetArgs{Target: b.target("pod", "p")}, 404)
	b.apply(vedette.ByMode, object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "q"}, "spec": object{
		"nodeName": "nowhere", "containers": []any{object{"name": "main", "image": "example.com/m"}}}}) // nobody ends it
	long := int64(7)
	b.done(vedette.DeleteArgs{Target: b.target("pod", "q"), GraceSeconds: &long, NoWait: true})
	if got := dig(b.live(core, "pods", "q"), "metadata", "deletionGracePeriodSeconds"); got != float64(7) {
		t.Errorf("it has a grace of %v", got)
	}
	out = b.op.Do(t.Context(), vedette.Operation{Deadline: time.Now().Add(time.Second), Args: vedette.DeleteArgs{Target: b.target("pod", "q")}})
	if out.State != vedette.Failed || out.Status != 504 {
		t.Errorf("what nobody ends is %+v", out)
	}
	b.contains(out.Message, "s to end")
}

// spy is a bench that notes what is asked of the API server, but for what it serves.
// It breaks off the answers to as many deletions as breaks says.
type spy struct {
	*bench
	mu     sync.Mutex
	asked  []string
	breaks int
}

func newSpy(t *testing.T) *spy {
	s := &spy{}
	s.bench = behind(t, func(_ http.ResponseWriter, r *http.Request, pass http.Handler) bool {
		if !strings.Contains(r.URL.Path, "/namespaces/t-") {
			return false
		}
		s.mu.Lock()
		s.asked = append(s.asked, r.Method)
		broken := r.Method == http.MethodDelete && s.breaks > 0
		if broken {
			s.breaks--
		}
		s.mu.Unlock()
		if broken {
			pass.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		return false
	})
	return s
}

// heard returns the methods of the requests since the last call.
func (s *spy) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := strings.Join(s.asked, " ")
	s.asked = nil
	return asked
}

func (s *spy) make(o object) (uid string) {
	s.Helper()
	out := s.apply(vedette.CreateOnly, o)
	s.heard()
	return dig(decode(s, out.Objects[0]), "metadata", "uid").(string)
}

// TestDeleteByUID holds what a known uid spares, and what becomes of one that is out
// of date.
func TestDeleteByUID(t *testing.T) {
	s := newSpy(t)
	none := "00000000-0000-0000-0000-000000000000"
	s.customKind("Thing", "things")
	held := func(name string) object {
		o := configMap(name, nil)
		o["metadata"].(object)["finalizers"] = []any{"example.com/never"}
		return o
	}
	for _, tt := range []struct {
		why    string
		kind   string
		object object // nil for none
		args   vedette.DeleteArgs
		stale  bool // the uid is another object's
		asks   string
		uid    bool // the outcome has it
		status int
	}{
		{why: "known", kind: "configmap", object: configMap("a", nil), asks: "DELETE", uid: true},
		{why: "a Secret", kind: "secret", object: secretOf("a"), asks: "DELETE", uid: true},
		{why: "of a custom kind", kind: "thing." + s.group(), object: object{"apiVersion": s.group() + "/v1", "kind": "Thing", "metadata": object{"name": "a"}}, asks: "DELETE", uid: true},
		{why: "unwaited for", kind: "configmap", object: configMap("b", nil), args: vedette.DeleteArgs{NoWait: true}, asks: "DELETE", uid: true},
		{why: "another one has the name", kind: "configmap", object: configMap("c", nil), stale: true, asks: "DELETE GET DELETE", uid: true},
		{why: "another one has the name, which is spared", kind: "configmap", object: configMap("d", nil), stale: true,
			args: vedette.DeleteArgs{OnlyKnown: true, MissingOK: true}, asks: "DELETE", status: 409},
		{why: "gone", kind: "configmap", stale: true, asks: "DELETE", status: 404},
		{why: "gone, which may be", kind: "configmap", stale: true, args: vedette.DeleteArgs{MissingOK: true}, asks: "DELETE", uid: true},
		{why: "what others have to let go of", kind: "configmap", object: held("e"), args: vedette.DeleteArgs{NoWait: true}, asks: "DELETE", uid: true},
	} {
		t.Run(tt.why, func(t *testing.T) {
			name, uid := "none", none
			if tt.object != nil {
				uid = s.make(tt.object)
				name = dig(tt.object, "metadata", "name").(string)
			}
			tt.args.Target, tt.args.KnownUID = s.target(tt.kind, name), uid
			if tt.stale {
				tt.args.KnownUID = none
			}
			out := s.do(tt.args)
			if asked := s.heard(); asked != tt.asks {
				t.Errorf("it asked %s, want %s", asked, tt.asks)
			}
			if out.State == vedette.Done == (tt.status != 0) || tt.status != 0 && out.Status != tt.status {
				t.Errorf("%s %d %s", out.State, out.Status, out.Message)
			}
			if has := len(out.UIDs) == 1 && out.UIDs[0] == uid && len(out.Keys) == 1; has != tt.uid {
				t.Errorf("it names %v %v, want %s: %v", out.Keys, out.UIDs, uid, tt.uid)
			}
		})
	}
	s.done(vedette.GetArgs{Target: s.target("configmap", "d")})
	must(t, plane.Patch(t.Context(), s.path(core, "configmaps", "e"), object{"metadata": object{"finalizers": nil}}))
}

// TestDeleteByUIDWithALostAnswer breaks off the answer to a deletion that was done.
func TestDeleteByUIDWithALostAnswer(t *testing.T) {
	s := newSpy(t)
	uid := s.make(configMap("a", nil))
	s.breaks = 1
	out := s.done(vedette.DeleteArgs{Target: s.target("configmap", "a"), KnownUID: uid})
	if asked := s.heard(); asked != "DELETE DELETE" || len(out.UIDs) != 1 || out.UIDs[0] != uid {
		t.Errorf("it asked %s and names %v", asked, out.UIDs)
	}
}

// TestDeleteByUIDLeavesWhatCameAfter has an object made anew between a deletion whose
// answer is lost and the next try.
func TestDeleteByUIDLeavesWhatCameAfter(t *testing.T) {
	var b *bench
	lost := false
	b = behind(t, func(_ http.ResponseWriter, r *http.Request, pass http.Handler) bool {
		if lost || r.Method != http.MethodDelete {
			return false
		}
		lost = true
		pass.ServeHTTP(httptest.NewRecorder(), r)
		must(t, plane.Create(t.Context(), b.path(core, "configmaps", ""), configMap("a", object{"anew": "yes"})))
		panic(http.ErrAbortHandler)
	})
	uid := dig(decode(t, b.apply(vedette.CreateOnly, configMap("a", nil)).Objects[0]), "metadata", "uid").(string)
	out := b.do(vedette.DeleteArgs{Target: b.target("configmap", "a"), KnownUID: uid})
	if out.State != vedette.Lost {
		t.Errorf("%s %d %s", out.State, out.Status, out.Message)
	}
	if dig(b.live(core, "configmaps", "a"), "data", "anew") != "yes" {
		t.Error("what came after is gone too")
	}
}

// TestWhatTookANameIsNotChosen has an object made anew, without the labels that it was
// chosen by, before its deletion comes.
func TestWhatTookANameIsNotChosen(t *testing.T) {
	var b *bench
	swapped := false
	b = behind(t, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !swapped && r.Method == http.MethodDelete {
			swapped = true
			must(t, plane.Delete(t.Context(), b.path(core, "configmaps", "a")))
			must(t, plane.Create(t.Context(), b.path(core, "configmaps", ""), configMap("a", object{"anew": "yes"})))
		}
		return false
	})
	chosen := configMap("a", nil)
	chosen["metadata"].(object)["labels"] = object{"old": "yes"}
	uid := dig(decode(t, b.apply(vedette.CreateOnly, chosen).Objects[0]), "metadata", "uid").(string)
	out := b.done(vedette.DeleteArgs{Target: b.target("configmap", ""), LabelSelector: "old=yes"})
	if !swapped || dig(b.live(core, "configmaps", "a"), "data", "anew") != "yes" {
		t.Error("what took the name is gone")
	}
	if len(out.UIDs) != 1 || out.UIDs[0] != uid {
		t.Errorf("it names %v, want %s", out.UIDs, uid)
	}
}

// TestDeleteOfAKindThatIsGone holds that a 404 for a kind tells nothing of its object.
func TestDeleteOfAKindThatIsGone(t *testing.T) {
	b := newBench(t, operate.Config{})
	b.customKind("Thing", "things")
	b.apply(vedette.CreateOnly, object{"apiVersion": b.group() + "/v1", "kind": "Thing", "metadata": object{"name": "a"}})
	target := vedette.Target{Kind: "Thing", APIVersion: b.group() + "/v1", Namespace: b.namespace, Name: "a"}
	b.done(vedette.GetArgs{Target: target})
	must(t, plane.Delete(t.Context(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things."+b.group()))
	must(t, plane.Await(t.Context(), "/apis", func(o object) bool { return !strings.Contains(string(encode(t, o)), b.group()) }))
	if out := b.do(vedette.DeleteArgs{Target: target, KnownUID: "u", MissingOK: true}); len(out.UIDs) != 0 {
		t.Errorf("of a kind that is gone it names %v", out.UIDs)
	}
}
