//go:build linux

package operate_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// TestOnlyAStatusSaysThatAnObjectIsMissing lets a proxy answer 404 for objects and kinds that exist.
func TestOnlyAStatusSaysThatAnObjectIsMissing(t *testing.T) {
	type answer struct{ contentType, body, quoted string }
	var current atomic.Pointer[answer]
	var path atomic.Pointer[string] // the end of the paths for which the proxy answers itself
	var answers atomic.Int32        // to how many reads it does that; 0 for all requests
	lastAnswer := make(chan struct{})
	var writes atomic.Int32
	b := newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		part, a := path.Load(), current.Load()
		if part != nil && answers.Load() > 0 {
			switch {
			case isWrite(r):
				part = nil
			case strings.HasSuffix(r.URL.Path, *part) && answers.Add(-1) == 0:
				path.Store(nil)
				close(lastAnswer)
			}
		}
		if part == nil || !strings.HasSuffix(r.URL.Path, *part) {
			if isWrite(r) {
				writes.Add(1)
			}
			return false
		}
		w.Header().Set("Content-Type", a.contentType)
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(a.body))
		return true
	})
	b.apply("", configMap("kept", object{"a": "1"}))
	b.apply("", configMap("finalized", nil))
	must(t, plane.Patch(t.Context(), b.path("/api/v1", "configmaps", "finalized"), object{"metadata": object{"finalizers": []any{"example.com/x"}}}))
	t.Cleanup(func() {
		_ = plane.Patch(t.Context(), b.path("/api/v1", "configmaps", "finalized"), object{"metadata": object{"finalizers": nil}})
	})
	kept, finalized, version := "/configmaps/kept", "/configmaps/finalized", "/api/v1"
	for name, a := range map[string]answer{
		"a page":             {"text/html", "<html><h1>404 Not Found</h1></html>", "an HTML page"},
		"a text":             {"text/plain", "default backend - 404", `"default backend - 404"`},
		"that of a router":   {"text/plain", "404 page not found\n", `"404 page not found"`},
		"JSON of a gateway":  {"application/json", `{"message":"no Route matched with those values"}`, "no Route matched"},
		"another object":     {"application/json", `{"kind":"ConfigMap","reason":"NotFound"}`, "ConfigMap"},
		"half a Status":      {"application/json", `{"kind":"Status","reason":"NotFound","message":"configmaps`, "Status"},
		"nothing":            {"text/plain", "", "(empty)"},
		"bytes that are not": {"text/plain", "\xff\xfe\x00", `\xff\xfe\x00`},
	} {
		t.Run(name, func(t *testing.T) {
			current.Store(&a)
			path.Store(&kept)
			writes.Store(0)
			words := []string{"127.0.0.1", "answered 404", a.quoted, "unknown whether"}
			for _, args := range []vedette.Args{
				vedette.GetArgs{Target: b.target("ConfigMap", "kept")},
				vedette.DeleteArgs{Target: b.target("ConfigMap", "kept"), MissingOK: true},
				vedette.DeleteArgs{Target: b.target("ConfigMap", "kept"), MissingOK: true, KnownUID: "0-0"},
				vedette.ApplyArgs{Manifest: encode(t, configMap("kept", object{"a": "2"})), Namespace: b.namespace},
				vedette.EventsArgs{Target: b.target("ConfigMap", "kept")},
			} {
				b.wantFailure(args, http.StatusBadGateway, words...)
			}
			if n := writes.Load(); n != 0 {
				t.Errorf("got %d requests that write, want none: the object may exist", n)
			}
			path.Store(nil)
			b.mustExecute(vedette.DiscoverArgs{}) // forgets the kinds
			path.Store(&version)
			b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, configMap("kept", object{"a": "2"})), Namespace: b.namespace}, http.StatusBadGateway,
				"answered 404", a.quoted)
			path.Store(nil)
			must(t, plane.Await(t.Context(), b.path("/api/v1", "configmaps", "kept"), func(o object) bool { return o["data"].(object)["a"] == "1" }))
		})
	}
	t.Run("the end of a deletion", func(t *testing.T) {
		current.Store(&answer{"text/html", "<html>", ""})
		b.mustExecute(vedette.DeleteArgs{Target: b.target("ConfigMap", "finalized"), NoWait: true})
		path.Store(&finalized)
		defer path.Store(nil)
		uid := b.live("/api/v1", "configmaps", "finalized")["metadata"].(object)["uid"].(string)
		b.wantFailure(vedette.DeleteArgs{Target: b.target("ConfigMap", "finalized"), KnownUID: uid}, http.StatusBadGateway, "an HTML page")
	})
	t.Run("the end of a deletion, while the kind seems to be gone", func(t *testing.T) {
		current.Store(&answer{"text/plain", "404 page not found\n", ""})
		uid := b.live("/api/v1", "configmaps", "kept")["metadata"].(object)["uid"].(string)
		answers.Store(2)
		path.Store(&kept)
		must(t, plane.Patch(t.Context(), b.path("/api/v1", "configmaps", "kept"), object{"metadata": object{"finalizers": []any{"example.com/x"}}}))
		released := make(chan error, 1)
		go func() {
			select {
			case <-lastAnswer:
			case <-t.Context().Done():
			}
			released <- plane.Patch(t.Context(), b.path("/api/v1", "configmaps", "kept"), object{"metadata": object{"finalizers": nil}})
		}()
		if out := b.execute(vedette.DeleteArgs{Target: b.target("ConfigMap", "kept"), KnownUID: uid}); out.State != vedette.Done {
			t.Errorf("got %s %d %s: %s", out.State, out.Status, out.Reason, out.Message)
		} else {
			must(t, <-released)
		}
	})
}

// TestKindThatIsGone deletes a kind of which the agent knows that it was served.
func TestKindThatIsGone(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createCustomKind("Passing", "passings")
	apiVersion := b.customGroup() + "/v1"
	target := vedette.Target{Kind: "Passing", APIVersion: apiVersion, Namespace: b.namespace, Name: "x"}
	b.wantFailure(vedette.GetArgs{Target: target}, http.StatusNotFound, `"x" not found`)
	must(t, plane.Delete(t.Context(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/passings."+b.customGroup()))
	deadline := time.Now().Add(time.Minute)
	for {
		out := b.execute(vedette.GetArgs{Target: target})
		if out.Reason == vedette.ReasonKindNotServed {
			break
		}
		isServed := out.Reason == "NotFound" && strings.Contains(out.Message, `"x" not found`)
		isVanishing := out.Reason == "BadGateway" && strings.Contains(out.Message, "the kind is being removed") // it is still listed
		if !isServed && !isVanishing || time.Now().After(deadline) {
			t.Fatalf("got %d %s: %s, want that the kind is not served", out.Status, out.Reason, out.Message)
		}
	}
	if out := b.wantFailure(vedette.GetArgs{Target: target}, http.StatusNotFound, "does not serve apiVersion "+apiVersion); out.Reason != vedette.ReasonKindNotServed {
		t.Errorf("got reason %s", out.Reason)
	}
}
