//go:build linux

package operate_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// warns holds what an outcome warns of.
func (b *bench) warns(out vedette.Outcome, want ...string) {
	b.Helper()
	if !slices.Equal(out.Warnings, want) {
		b.Errorf("%s %d %s warns %q, want %q", out.State, out.Status, out.Message, out.Warnings, want)
	}
}

// deprecated is what API servers say of each request about Endpoints.
const deprecated = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"

// TestDeprecatedVersions does whatever can be done to an object of a deprecated
// version, by one request or many. It is warned of once, of what fails too.
func TestDeprecatedVersions(t *testing.T) {
	b := newBench(t, operate.Config{})
	endpoints := func(port int) object {
		return object{"apiVersion": "v1", "kind": "Endpoints", "metadata": object{"name": "e"},
			"subsets": []any{object{"addresses": []any{object{"ip": "192.0.2.1"}}, "ports": []any{object{"port": port}}}}}
	}
	// A controller deletes Endpoints of no Service, and leaves those of one alone that selects nothing.
	b.apply(vedette.ByMode, object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "e"}, "spec": object{"ports": []any{object{"port": 80}}}})
	for i, s := range []vedette.Strategy{vedette.CreateOnly, vedette.ByMode, vedette.ServerForce, vedette.ReplaceObject, vedette.Recreate} {
		b.warns(b.apply(s, endpoints(80+i)), deprecated)
	}
	e := b.target("Endpoints", "e")
	e.APIVersion = "v1"
	b.warns(b.done(vedette.GetArgs{Target: e}), deprecated)
	b.warns(b.done(vedette.PatchArgs{Target: e, Patch: []byte(`{"metadata":{"labels":{"a":"b"}}}`)}), deprecated)
	b.warns(b.dry(vedette.DeleteArgs{Target: e}), deprecated)
	b.warns(b.fails(vedette.ApplyArgs{Manifest: encode(t, endpoints(-1)), Namespace: b.namespace}, 422, "must be between"), deprecated)
	b.warns(b.done(vedette.DeleteArgs{Target: e}), deprecated)
	b.warns(b.fails(vedette.GetArgs{Target: e}, 404), deprecated)
	b.warns(b.done(vedette.PruneArgs{Kinds: []string{"core/v1/Endpoints"}, All: true, Namespaces: []string{b.namespace}}), deprecated)
	b.warns(b.apply(vedette.ByMode, configMap("c", nil)))
}

// TestPodSecurity warns of pods that a namespace is not to run some day.
func TestPodSecurity(t *testing.T) {
	b := newBench(t, operate.Config{})
	must(t, plane.Patch(t.Context(), core+"/namespaces/"+b.namespace, object{"metadata": object{"labels": object{"pod-security.kubernetes.io/warn": "restricted"}}}))
	for _, s := range []vedette.Strategy{vedette.ByMode, vedette.ServerSide} {
		d := whole("d"+strings.ToLower(string(s)), "1")
		out := b.apply(s, d)
		if len(out.Warnings) != 1 || !strings.HasPrefix(out.Warnings[0], `would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false (containers "main", "sidecar"`) {
			t.Errorf("it warns %q", out.Warnings)
		}
	}
}

// TestAWebhookThatWarns passes on what a webhook warns of, of what it lets pass and
// of what it denies.
func TestAWebhookThatWarns(t *testing.T) {
	b := newBench(t, operate.Config{})
	var says atomic.Pointer[verdict]
	b.webhook(func() verdict { return *says.Load() })
	said := []string{`a "quoted" word, and a \`, "twice", "twice", ", 299 - \"faked\""}
	says.Store(&verdict{Allowed: true, Warnings: said})
	want := []string{`a "quoted" word, and a \`, "twice", `, 299 - "faked"`}
	b.warns(b.apply(vedette.CreateOnly, judged("c")), want...)
	says.Store(&verdict{Status: object{"code": 403, "message": "no"}, Warnings: said})
	b.warns(b.fails(vedette.ApplyArgs{Manifest: encode(t, judged("d")), Namespace: b.namespace}, 403, "denied the request: no"), want...)
}

// TestNoWarningTellsASecret has a webhook quote what is secret, in warnings that the
// API server cuts too, of a Secret by whichever of its names.
func TestNoWarningTellsASecret(t *testing.T) {
	b := newBench(t, operate.Config{})
	canary := "c4n4ry-" + strings.Repeat("in-a-coal-mine-", 30)
	var says atomic.Pointer[verdict]
	b.webhook(func() verdict { return *says.Load() })
	secret := func(kind string) vedette.ApplyArgs {
		s := toBeJudged(object{"apiVersion": "v1", "kind": kind, "metadata": object{"name": "s"}, "stringData": object{"password": canary, "word": "canary"}})
		return vedette.ApplyArgs{Manifest: encode(t, s), Namespace: b.namespace}
	}
	said := []string{"it is " + canary + "!", "and again " + canary + "!", "harmless"}
	says.Store(&verdict{Allowed: true, Warnings: said})
	b.warns(b.done(secret("Secret")), "it is ***!", "and again ***!", "harmless")
	b.warns(b.done(secret("secrets")), "it is ***!", "and again ***!", "harmless")
	patch := vedette.PatchArgs{Target: b.target("secret", "s"), Type: vedette.MergePatch, Patch: []byte(`{"stringData":{"password":"` + canary + `"}}`)}
	b.warns(b.done(patch), "it is ***!", "and again ***!", "harmless")
	said = append(said, strings.Repeat("a canary ", 500))
	says.Store(&verdict{Allowed: true, Warnings: said})
	b.warns(b.done(secret("Secret")), "it is ***", "and again ***", "harmless", strings.Repeat("a *** ", 28)+"a ca")
	says.Store(&verdict{Status: object{"message": "it is " + canary}, Warnings: said})
	for _, args := range []vedette.Args{secret("Secret"), secret("secrets"), patch} {
		if told := encode(t, b.fails(args, 400, "denied the request: it is ***")); bytes.Contains(told, []byte("c4n4ry")) {
			t.Errorf("%s tells the secret: %s", args.Verb(), told)
		}
	}
}

// TestEveryRequestIsHeard has each answer warn of its request, and holds that an
// operation tells all of them: also those whose answer is of no use.
func TestEveryRequestIsHeard(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	b := behind(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		mu.Lock()
		defer mu.Unlock()
		said := r.Method + " " + r.URL.Path
		w.Header().Add("Warning", `199 - "of a cache"`)
		w.Header().Add("Warning", `299 - "`+said+`" "Thu, 01 Jan 1970 00:00:00 GMT", 299 proxy "`+said+`"`)
		if asked = append(asked, said); writes(r) && !slices.Contains(asked[:len(asked)-1], said) {
			status(w, 503, "ServiceUnavailable", "not now")
			return true
		}
		return false
	})
	heard := func() []string {
		mu.Lock()
		defer mu.Unlock()
		all := asked
		asked = nil
		return all
	}
	d := vedette.Target{Kind: "Deployment", APIVersion: "apps/v1", Namespace: b.namespace, Name: "d"}
	for _, args := range []vedette.Args{
		vedette.ApplyArgs{Manifest: encode(t, whole("d", "1")), Namespace: b.namespace, Strategy: vedette.ClientSide},
		vedette.ApplyArgs{Manifest: encode(t, less("d", "1")), Namespace: b.namespace, Strategy: vedette.ServerForce},
		vedette.ScaleArgs{Target: d, Replicas: 2},
		vedette.StatusArgs{Target: d},
		vedette.RestartArgs{Target: d},
		vedette.HistoryArgs{Target: d},
		vedette.ListArgs{Target: vedette.Target{Kind: "Deployment", APIVersion: "apps/v1", Namespace: b.namespace}},
		vedette.VersionArgs{Manifest: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`), Namespace: b.namespace},
		vedette.LogsArgs{Target: vedette.Target{Kind: "Pod", APIVersion: "v1", Namespace: b.namespace, Name: "none"}, Container: "main"},
		vedette.DeleteArgs{Target: d},
	} {
		out := b.do(args)
		var want []string
		for _, one := range heard() {
			if !slices.Contains(want, one) {
				want = append(want, one)
			}
		}
		if b.warns(out, want...); len(want) == 0 {
			t.Errorf("%s asked for nothing", args.Verb())
		}
	}
}
