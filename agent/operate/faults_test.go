//go:build linux

package operate_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// newProxyTestbed is a testbed whose requests pass a proxy. Intercept reports whether it handled a
// request itself.
func newProxyTestbed(t *testing.T, intercept func(w http.ResponseWriter, r *http.Request, backend http.Handler) bool) *testbed {
	t.Helper()
	return newProxyTestbedWithConfig(t, operate.Config{Requests: request.Config{InitialBackoff: time.Millisecond}}, intercept)
}

func newProxyTestbedWithConfig(t *testing.T, cfg operate.Config, intercept func(w http.ResponseWriter, r *http.Request, backend http.Handler) bool) *testbed {
	t.Helper()
	must(t, startPlane())
	target, err := url.Parse(plane.URL)
	must(t, err)
	backend := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: plane.Client().Transport}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !intercept(w, r, backend) {
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig := fmt.Sprintf(`{clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}]}`, server.URL)
	c, err := kube.Connect(kube.Access{KubeconfigContents: []byte(kubeconfig)}, kube.Options{})
	must(t, err)
	t.Cleanup(c.Close)
	b := newTestbed(t, operate.Config{})
	b.op, err = operate.New(c, cfg)
	must(t, err)
	return b
}

// isWrite reports whether a request is one of the verb under test.
func isWrite(r *http.Request) bool { return r.Method != http.MethodGet }

func writeStatus(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message)
}

func TestTemporaryErrorsAreRetried(t *testing.T) {
	for _, tt := range []struct {
		name   string
		code   int
		reason string
		want   int32 // requests that write
		ok     bool
	}{
		{"throttling", 429, "TooManyRequests", 2, true},
		{"unavailable", 503, "ServiceUnavailable", 2, true},
		{"timeout", 504, "Timeout", 2, true},
		{"conflict", 409, "Conflict", 2, true},
		{"invalid", 422, "Invalid", 1, false},
		{"forbidden", 403, "Forbidden", 1, false},
		{"bad request", 400, "BadRequest", 1, false},
		{"internal error", 500, "InternalError", 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var requests atomic.Int32
			b := newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if !isWrite(r) || requests.Add(1) > 1 {
					return false
				}
				writeStatus(w, tt.code, tt.reason, "not now: "+strings.Repeat("a long text ", 100)+"end")
				return true
			})
			out := b.execute(vedette.ApplyArgs{Manifest: encode(t, configMap("c", object{"a": "1"})), Namespace: b.namespace})
			if (out.State == vedette.Done) != tt.ok || requests.Load() != tt.want {
				t.Errorf("got %s %d after %d requests", out.State, out.Status, requests.Load())
			}
			if !tt.ok && (out.Status != tt.code || out.Reason != tt.reason || !strings.HasSuffix(out.Message, "end")) {
				t.Errorf("got %d %s: %s", out.Status, out.Reason, out.Message)
			}
		})
	}
}

// TestErrorBodyWithInvalidUTF8 returns the error of a proxy in another encoding. gRPC would reject it
// unchanged, and the outcome would never arrive.
func TestErrorBodyWithInvalidUTF8(t *testing.T) {
	b := newProxyTestbed(t, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("acc\xe8s interdit"))
		return true
	})
	b.wantFailure(vedette.GetArgs{Target: vedette.Target{Kind: "Pod", APIVersion: "v1", Namespace: "n", Name: "p"}}, 403, "acc\uFFFDs interdit")
}

// TestErrorsThatAreNotRetried checks errors of the caller, and requests that are not idempotent, with
// all retry policies.
func TestErrorsThatAreNotRetried(t *testing.T) {
	create := vedette.ApplyArgs{Manifest: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"g-"}}`)}
	apply := vedette.ApplyArgs{Manifest: encode(t, configMap("timeout", object{"a": "1"}))}
	for _, tt := range []struct {
		name   string
		code   int
		reason string
		args   vedette.ApplyArgs
		want   int32
	}{
		{"bad request", 400, "BadRequest", apply, 1},
		{"unknown", 404, "NotFound", apply, 1},
		{"forbidden", 403, "Forbidden", apply, 1},
		{"invalid", 422, "Invalid", apply, 1},
		{"an apply that failed inside", 500, "InternalError", apply, 4},
		{"a create that failed inside", 500, "InternalError", create, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var requests atomic.Int32
			b := newProxyTestbedWithConfig(t, operate.Config{Requests: request.Config{InitialBackoff: time.Millisecond, Retry: request.RetryPolicy{AnyError: true, ErrorSubstrings: []string{"timeout"}}}},
				func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
					if isWrite(r) {
						requests.Add(1)
						writeStatus(w, tt.code, tt.reason, `configmaps "timeout": not now`)
					}
					return isWrite(r)
				})
			tt.args.Namespace = b.namespace
			if out := b.execute(tt.args); out.State != vedette.Failed || out.Status != tt.code || requests.Load() != tt.want {
				t.Errorf("got %s %d after %d requests, want %d", out.State, out.Status, requests.Load(), tt.want)
			}
		})
	}
}

// TestRetriesAreLimited counts the requests to an API server that always fails.
func TestRetriesAreLimited(t *testing.T) {
	for _, tt := range []struct {
		name    string
		retries request.RetryPolicy
		want    int32
	}{
		{"twice", request.RetryPolicy{MaxRetries: 2, Backoff: time.Millisecond}, 3},
		{"never", request.RetryPolicy{Disabled: true}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var requests atomic.Int32
			b := newProxyTestbedWithConfig(t, operate.Config{Requests: request.Config{Retry: tt.retries}}, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if isWrite(r) {
					requests.Add(1)
					writeStatus(w, 503, "ServiceUnavailable", "not now")
				}
				return isWrite(r)
			})
			if out := b.execute(vedette.ApplyArgs{Manifest: encode(t, configMap("c", nil)), Namespace: b.namespace}); out.Status != 503 || requests.Load() != tt.want {
				t.Errorf("got %+v after %d requests", out, requests.Load())
			}
		})
	}
}

func TestRetryAfterIsRespected(t *testing.T) {
	var last, retryAfter atomic.Int64
	retryAfter.Store(1)
	b := newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !isWrite(r) || last.Load() != 0 {
			return false
		}
		last.Store(time.Now().UnixMilli())
		w.Header().Set("Retry-After", fmt.Sprint(retryAfter.Load()))
		writeStatus(w, 429, "TooManyRequests", "slow down")
		return true
	})
	b.apply(vedette.StrategyDefault, configMap("c", nil))
	if waited := time.Now().UnixMilli() - last.Load(); waited < 1000 {
		t.Errorf("waited %d ms", waited)
	}
	last.Store(0)
	retryAfter.Store(120)
	out := b.op.Execute(t.Context(), vedette.Operation{Deadline: time.Now().Add(time.Minute),
		Args: vedette.ApplyArgs{Manifest: encode(t, configMap("c", object{"b": "2"})), Namespace: b.namespace}})
	if out.State != vedette.Failed || out.Status != 429 || out.Message != "slow down" {
		t.Errorf("Retry-After after the deadline: got %+v", out)
	}
}

// TestOnlyUnrepeatableWritesAreLost forwards requests and aborts their responses.
func TestOnlyUnrepeatableWritesAreLost(t *testing.T) {
	var attempts atomic.Int32
	b := newProxyTestbed(t, func(_ http.ResponseWriter, r *http.Request, backend http.Handler) bool {
		if !isWrite(r) || attempts.Add(1) > 1 {
			return false
		}
		backend.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
	out := b.execute(vedette.ApplyArgs{Manifest: encode(t, object{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"generateName": "g-", "labels": object{"generated": "yes"}}}), Namespace: b.namespace})
	if out.State != vedette.Lost || !strings.Contains(out.Message, "may have taken effect") {
		t.Errorf("create: got %+v", out)
	}
	if got := b.mustExecute(vedette.ListArgs{Target: b.target("configmap", ""), LabelSelector: "generated=yes"}); len(got.Objects) != 1 {
		t.Errorf("got %d objects, want 1", len(got.Objects))
	}
	for _, s := range []vedette.Strategy{vedette.StrategyClientSide, vedette.StrategyServerSide, vedette.StrategyReplace} {
		attempts.Store(0)
		b.apply(s, configMap("named", object{"by": string(s)}))
		if got := dig(b.live(core, "configmaps", "named"), "data", "by"); got != string(s) || attempts.Load() < 2 {
			t.Errorf("strategy %s: got %v after %d requests", s, got, attempts.Load())
		}
	}
	attempts.Store(0)
	b.mustExecute(vedette.DeleteArgs{Target: b.target("configmap", "named")})
}

// TestUncertainOutcomeIsLost answers the first write with an error that leaves open whether it took
// effect, and all others with one that does not.
func TestUncertainOutcomeIsLost(t *testing.T) {
	apply := vedette.ApplyArgs{Manifest: encode(t, configMap("open", object{"a": "1"}))}
	create := vedette.ApplyArgs{Manifest: apply.Manifest, Strategy: vedette.StrategyCreateOnly}
	abort := func(w http.ResponseWriter) { panic(http.ErrAbortHandler) }
	refuse := func(code int, reason, message string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { writeStatus(w, code, reason, message) }
	}
	down := func(w http.ResponseWriter) { // for longer than the operation may take
		w.Header().Set("Retry-After", "3600")
		writeStatus(w, 503, "ServiceUnavailable", "not ready")
	}
	for _, tt := range []struct {
		name        string
		args        vedette.ApplyArgs
		first, then func(http.ResponseWriter)
		state       vedette.OutcomeState
		wantMessage string
	}{
		{"broken off, then down", apply, abort, down, vedette.Lost, "not ready"},
		{"broken off, then refused", apply, abort, refuse(422, "Invalid", "not like this"), vedette.Lost, "not like this"},
		{"out of time, then refused", apply, refuse(504, "Timeout", "no time"), refuse(403, "Forbidden", "not you"), vedette.Lost, "not you"},
		{"etcd is gone", create, refuse(500, "", "etcdserver: request timed out"), nil, vedette.Lost, "etcdserver: request timed out"},
		{"out of time", create, refuse(504, "Timeout", "no time"), nil, vedette.Lost, "no time"},
		{"no from a load balancer", create, refuse(502, "", "bad gateway"), nil, vedette.Lost, "bad gateway"},
		{"no words at all", create, func(w http.ResponseWriter) { w.WriteHeader(502) }, nil, vedette.Lost, "502 Bad Gateway, without a message"},
		{"no from a webhook", create, refuse(500, "InternalError", "failed calling webhook"), nil, vedette.Failed, "failed calling webhook"},
		{"down, then refused", apply, refuse(503, "ServiceUnavailable", "not ready"), refuse(422, "Invalid", "not like this"), vedette.Failed, "not like this"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var requests atomic.Int32
			b := newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if !isWrite(r) {
					return false
				}
				if requests.Add(1) == 1 {
					tt.first(w)
				} else {
					tt.then(w)
				}
				return true
			})
			tt.args.Namespace = b.namespace
			out := b.op.Execute(t.Context(), vedette.Operation{Deadline: time.Now().Add(time.Minute), Args: tt.args})
			if out.State != tt.state || !strings.Contains(out.Message, tt.wantMessage) {
				t.Errorf("got %s %d after %d requests: %s", out.State, out.Status, requests.Load(), out.Message)
			}
		})
	}
}

func TestUnavailableAPIService(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	must(t, plane.Create(t.Context(), "/apis/apiregistration.k8s.io/v1/apiservices", object{"metadata": object{"name": "v1.down.example.com"},
		"spec": object{"group": "down.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
			"service": object{"name": "none", "namespace": b.namespace}, "insecureSkipTLSVerify": true}}))
	t.Cleanup(func() {
		must(t, plane.Delete(context.Background(), "/apis/apiregistration.k8s.io/v1/apiservices/v1.down.example.com"))
	})
	must(t, plane.Await(t.Context(), "/apis/apiregistration.k8s.io/v1/apiservices/v1.down.example.com", func(o object) bool {
		return dig(o, "status", "conditions", 0, "status") == "False"
	}))
	out := b.executeBriefly(vedette.ApplyArgs{Namespace: b.namespace, Manifest: []byte(`{"apiVersion":"down.example.com/v1","kind":"Thing","metadata":{"name":"a"}}`)},
		func(out vedette.Outcome) bool { return out.Status == 503 })
	if out.State != vedette.Failed || out.Status != 503 {
		t.Errorf("got %+v", out)
	}
	b.wantContains(out.Message, "down.example.com/v1 is unavailable")
	b.wantFailure(vedette.GetArgs{Target: b.target("thing.down.example.com", "a")}, 503, "down.example.com")
	b.apply(vedette.StrategyDefault, configMap("others-work", nil))
}

func TestQuotaAndRBACErrors(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	must(t, plane.Create(t.Context(), b.path(core, "resourcequotas", ""), object{"metadata": object{"name": "none"}, "spec": object{"hard": object{"count/services": "0"}}}))
	must(t, plane.Await(t.Context(), b.path(core, "resourcequotas", "none"), func(o object) bool { return dig(o, "status", "hard") != nil }))
	b.wantFailure(vedette.ApplyArgs{Namespace: b.namespace, Manifest: []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`)},
		403, "exceeded quota: none")
	kubeconfig, err := plane.UserKubeconfig("nobody")
	must(t, err)
	c, err := kube.Connect(kube.Access{KubeconfigFile: kubeconfig}, kube.Options{})
	must(t, err)
	defer c.Close()
	b.op, err = operate.New(c, operate.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b.wantFailure(vedette.ListArgs{Target: b.target("pods", "")}, 403, `User "nobody" cannot list resource "pods"`)
	b.wantFailure(vedette.VersionArgs{Manifest: encode(t, secretManifest("a")), Namespace: b.namespace}, 403, `User "nobody" cannot list resource "secrets"`)
	must(t, plane.Create(t.Context(), b.path("/apis/rbac.authorization.k8s.io/v1", "roles", ""), object{"metadata": object{"name": "some"},
		"rules": []any{object{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"*"}}}}))
	must(t, plane.Create(t.Context(), b.path("/apis/rbac.authorization.k8s.io/v1", "rolebindings", ""), object{"metadata": object{"name": "some"},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "some"},
		"subjects": []any{object{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}}}))
	must(t, plane.Await(t.Context(), "/api", func(object) bool {
		return b.execute(vedette.ApplyArgs{Manifest: encode(t, configMap("c", nil)), Namespace: b.namespace}).State == vedette.Done
	}))
	for _, s := range []vedette.Strategy{vedette.StrategyDefault, vedette.StrategyClientSide, vedette.StrategyReplace, vedette.StrategyRecreate, vedette.StrategyCreateOnly} {
		b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, configMap("c", nil)), Namespace: "default", Strategy: s}, 403,
			`User "nobody" cannot`, `resource "configmaps" in API group "" in the namespace "default"`)
	}
}
