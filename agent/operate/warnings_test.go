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

// wantWarnings compares the warnings of an outcome.
func (b *testbed) wantWarnings(out vedette.Outcome, want ...string) {
	b.Helper()
	if !slices.Equal(out.Warnings, want) {
		b.Errorf("%s %d %s: got warnings %q, want %q", out.State, out.Status, out.Message, out.Warnings, want)
	}
}

// endpointsDeprecated is the warning of API servers about each request for Endpoints.
const endpointsDeprecated = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"

// TestDeprecationIsWarnedAboutOnce executes all verbs on an object of a deprecated version. Each outcome has the
// warning once, also if the operation fails.
func TestDeprecationIsWarnedAboutOnce(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	endpoints := func(port int) object {
		return object{"apiVersion": "v1", "kind": "Endpoints", "metadata": object{"name": "e"},
			"subsets": []any{object{"addresses": []any{object{"ip": "192.0.2.1"}}, "ports": []any{object{"port": port}}}}}
	}
	// A controller deletes Endpoints of no Service, and leaves those of one alone that selects nothing.
	b.apply(vedette.StrategyDefault, object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "e"}, "spec": object{"ports": []any{object{"port": 80}}}})
	for i, s := range []vedette.Strategy{vedette.StrategyCreateOnly, vedette.StrategyDefault, vedette.StrategyForceConflicts, vedette.StrategyReplace, vedette.StrategyRecreate} {
		b.wantWarnings(b.apply(s, endpoints(80+i)), endpointsDeprecated)
	}
	e := b.target("Endpoints", "e")
	e.APIVersion = "v1"
	b.wantWarnings(b.mustExecute(vedette.GetArgs{Target: e}), endpointsDeprecated)
	b.wantWarnings(b.mustExecute(vedette.PatchArgs{Target: e, Patch: []byte(`{"metadata":{"labels":{"a":"b"}}}`)}), endpointsDeprecated)
	b.wantWarnings(b.dryRun(vedette.DeleteArgs{Target: e}), endpointsDeprecated)
	b.wantWarnings(b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, endpoints(-1)), Namespace: b.namespace}, 422, "must be between"), endpointsDeprecated)
	b.wantWarnings(b.mustExecute(vedette.DeleteArgs{Target: e}), endpointsDeprecated)
	b.wantWarnings(b.wantFailure(vedette.GetArgs{Target: e}, 404), endpointsDeprecated)
	b.wantWarnings(b.mustExecute(vedette.PruneArgs{Kinds: []string{"core/v1/Endpoints"}, All: true, Namespaces: []string{b.namespace}}), endpointsDeprecated)
	b.wantWarnings(b.apply(vedette.StrategyDefault, configMap("c", nil)))
}

// TestPodSecurityWarnings checks warnings about pods that the namespace should not run.
func TestPodSecurityWarnings(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	must(t, plane.Patch(t.Context(), core+"/namespaces/"+b.namespace, object{"metadata": object{"labels": object{"pod-security.kubernetes.io/warn": "restricted"}}}))
	for _, s := range []vedette.Strategy{vedette.StrategyDefault, vedette.StrategyServerSide} {
		d := fullDeployment("d"+strings.ToLower(string(s)), "1")
		out := b.apply(s, d)
		if len(out.Warnings) != 1 || !strings.HasPrefix(out.Warnings[0], `would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false (containers "main", "sidecar"`) {
			t.Errorf("warnings: got %q", out.Warnings)
		}
	}
}

// TestWebhookWarningsReachTheOutcome checks the warnings of a webhook that allows or denies a request.
func TestWebhookWarningsReachTheOutcome(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	var response atomic.Pointer[admissionResponse]
	b.createWebhook(func() admissionResponse { return *response.Load() })
	warnings := []string{`a "quoted" word, and a \`, "twice", "twice", ", 299 - \"faked\""}
	response.Store(&admissionResponse{Allowed: true, Warnings: warnings})
	want := []string{`a "quoted" word, and a \`, "twice", `, 299 - "faked"`}
	b.wantWarnings(b.apply(vedette.StrategyCreateOnly, reviewedConfigMap("c")), want...)
	response.Store(&admissionResponse{Status: object{"code": 403, "message": "no"}, Warnings: warnings})
	b.wantWarnings(b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, reviewedConfigMap("d")), Namespace: b.namespace}, 403, "denied the request: no"), want...)
}

// TestWebhookWarningsAreMasked has a webhook quote a Secret in warnings, which the API server also cuts,
// for all names of the kind.
func TestWebhookWarningsAreMasked(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	canary := "c4n4ry-" + strings.Repeat("in-a-coal-mine-", 30)
	var response atomic.Pointer[admissionResponse]
	b.createWebhook(func() admissionResponse { return *response.Load() })
	secret := func(kind string) vedette.ApplyArgs {
		s := withReviewLabel(object{"apiVersion": "v1", "kind": kind, "metadata": object{"name": "s"}, "stringData": object{"password": canary, "word": "canary"}})
		return vedette.ApplyArgs{Manifest: encode(t, s), Namespace: b.namespace}
	}
	warnings := []string{"it is " + canary + "!", "and again " + canary + "!", "harmless"}
	response.Store(&admissionResponse{Allowed: true, Warnings: warnings})
	b.wantWarnings(b.mustExecute(secret("Secret")), "it is ***!", "and again ***!", "harmless")
	b.wantWarnings(b.mustExecute(secret("secrets")), "it is ***!", "and again ***!", "harmless")
	patch := vedette.PatchArgs{Target: b.target("secret", "s"), Type: vedette.MergePatch, Patch: []byte(`{"stringData":{"password":"` + canary + `"}}`)}
	b.wantWarnings(b.mustExecute(patch), "it is ***!", "and again ***!", "harmless")
	warnings = append(warnings, strings.Repeat("a canary ", 500))
	response.Store(&admissionResponse{Allowed: true, Warnings: warnings})
	b.wantWarnings(b.mustExecute(secret("Secret")), "it is ***", "and again ***", "harmless", strings.Repeat("a *** ", 28)+"a ca")
	response.Store(&admissionResponse{Status: object{"message": "it is " + canary}, Warnings: warnings})
	for _, args := range []vedette.Args{secret("Secret"), secret("secrets"), patch} {
		if outcome := encode(t, b.wantFailure(args, 400, "denied the request: it is ***")); bytes.Contains(outcome, []byte("c4n4ry")) {
			t.Errorf("%s: the outcome contains the secret: %s", args.Verb(), outcome)
		}
	}
}

// TestWarningsOfEveryRequestAreReported adds a warning to each response, and checks that an operation
// reports all of them, also those of responses that it ignores.
func TestWarningsOfEveryRequestAreReported(t *testing.T) {
	var mu sync.Mutex
	var requests []string
	b := newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		mu.Lock()
		defer mu.Unlock()
		line := r.Method + " " + r.URL.Path
		w.Header().Add("Warning", `199 - "of a cache"`)
		w.Header().Add("Warning", `299 - "`+line+`" "Thu, 01 Jan 1970 00:00:00 GMT", 299 proxy "`+line+`"`)
		requests = append(requests, line)
		if isWrite(r) && !slices.Contains(requests[:len(requests)-1], line) {
			writeStatus(w, 503, "ServiceUnavailable", "not now")
			return true
		}
		return false
	})
	takeRequests := func() []string {
		mu.Lock()
		defer mu.Unlock()
		all := requests
		requests = nil
		return all
	}
	d := vedette.Target{Kind: "Deployment", APIVersion: "apps/v1", Namespace: b.namespace, Name: "d"}
	for _, args := range []vedette.Args{
		vedette.ApplyArgs{Manifest: encode(t, fullDeployment("d", "1")), Namespace: b.namespace, Strategy: vedette.StrategyClientSide},
		vedette.ApplyArgs{Manifest: encode(t, reducedDeployment("d", "1")), Namespace: b.namespace, Strategy: vedette.StrategyForceConflicts},
		vedette.ScaleArgs{Target: d, Replicas: 2},
		vedette.StatusArgs{Target: d},
		vedette.RestartArgs{Target: d},
		vedette.HistoryArgs{Target: d},
		vedette.ListArgs{Target: vedette.Target{Kind: "Deployment", APIVersion: "apps/v1", Namespace: b.namespace}},
		vedette.VersionArgs{Manifest: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`), Namespace: b.namespace},
		vedette.LogsArgs{Target: vedette.Target{Kind: "Pod", APIVersion: "v1", Namespace: b.namespace, Name: "none"}, Container: "main"},
		vedette.DeleteArgs{Target: d},
	} {
		out := b.execute(args)
		var want []string
		for _, line := range takeRequests() {
			if !slices.Contains(want, line) {
				want = append(want, line)
			}
		}
		if b.wantWarnings(out, want...); len(want) == 0 {
			t.Errorf("%s: no requests were sent", args.Verb())
		}
	}
}
