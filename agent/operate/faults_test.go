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
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/watch"
)

// behind is a bench whose requests go through a proxy that may take them, as
// the way to an API server does on a bad day. take reports whether it did.
func behind(t *testing.T, take func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool) *bench {
	t.Helper()
	return behindOf(t, operate.Config{FirstRetry: time.Millisecond}, take)
}

func behindOf(t *testing.T, cfg operate.Config, take func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool) *bench {
	t.Helper()
	must(t, started())
	target, err := url.Parse(plane.URL)
	must(t, err)
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: plane.Client().Transport}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !take(w, r, pass) {
			pass.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig := fmt.Sprintf(`{clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}]}`, server.URL)
	c, err := watch.Connect(watch.Access{KubeconfigContents: []byte(kubeconfig)}, watch.Options{})
	must(t, err)
	t.Cleanup(c.Close)
	b := newBench(t, operate.Config{})
	b.op, err = operate.New(c, cfg)
	must(t, err)
	return b
}

// writes reports whether a request is one of the verb under test.
func writes(r *http.Request) bool { return r.Method != http.MethodGet }

func status(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message)
}

func TestWhatIsTriedAgain(t *testing.T) {
	for _, tt := range []struct {
		why    string
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
		t.Run(tt.why, func(t *testing.T) {
			var asked atomic.Int32
			b := behind(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if !writes(r) || asked.Add(1) > 1 {
					return false
				}
				status(w, tt.code, tt.reason, "not now: "+strings.Repeat("a long text ", 100)+"end")
				return true
			})
			out := b.do(vedette.ApplyArgs{Manifest: encode(t, configMap("c", object{"a": "1"})), Namespace: b.namespace})
			if (out.State == vedette.Done) != tt.ok || asked.Load() != tt.want {
				t.Errorf("%s %d after %d requests", out.State, out.Status, asked.Load())
			}
			if !tt.ok && (out.Status != tt.code || out.Reason != tt.reason || !strings.HasSuffix(out.Message, "end")) {
				t.Errorf("got %d %s: %s", out.Status, out.Reason, out.Message)
			}
		})
	}
}

// TestARefusalThatIsNoText tells what a proxy says in an encoding of its own. The wire
// would not take it as it is, and the outcome would never arrive.
func TestARefusalThatIsNoText(t *testing.T) {
	b := behind(t, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("acc\xe8s interdit"))
		return true
	})
	b.fails(vedette.GetArgs{Target: vedette.Target{Kind: "Pod", APIVersion: "v1", Namespace: "n", Name: "p"}}, 403, "acc\uFFFDs interdit")
}

// TestWhatIsNeverTriedAgain is the caller's fault, and what would be done twice,
// whatever the configuration says.
func TestWhatIsNeverTriedAgain(t *testing.T) {
	create := vedette.ApplyArgs{Manifest: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"g-"}}`)}
	apply := vedette.ApplyArgs{Manifest: encode(t, configMap("timeout", object{"a": "1"}))}
	for _, tt := range []struct {
		why    string
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
		t.Run(tt.why, func(t *testing.T) {
			var asked atomic.Int32
			b := behindOf(t, operate.Config{FirstRetry: time.Millisecond, Retries: operate.Retries{Any: true, Texts: []string{"timeout"}}},
				func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
					if writes(r) {
						asked.Add(1)
						status(w, tt.code, tt.reason, `configmaps "timeout": not now`)
					}
					return writes(r)
				})
			tt.args.Namespace = b.namespace
			if out := b.do(tt.args); out.State != vedette.Failed || out.Status != tt.code || asked.Load() != tt.want {
				t.Errorf("%s %d after %d requests, want %d", out.State, out.Status, asked.Load(), tt.want)
			}
		})
	}
}

// TestRetriesAreBounded counts requests to an API server that is never well.
func TestRetriesAreBounded(t *testing.T) {
	for _, tt := range []struct {
		why     string
		retries operate.Retries
		want    int32
	}{
		{"twice", operate.Retries{Most: 2, Pause: time.Millisecond}, 3},
		{"never", operate.Retries{Off: true}, 1},
	} {
		t.Run(tt.why, func(t *testing.T) {
			var asked atomic.Int32
			b := behindOf(t, operate.Config{Retries: tt.retries}, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if writes(r) {
					asked.Add(1)
					status(w, 503, "ServiceUnavailable", "not now")
				}
				return writes(r)
			})
			if out := b.do(vedette.ApplyArgs{Manifest: encode(t, configMap("c", nil)), Namespace: b.namespace}); out.Status != 503 || asked.Load() != tt.want {
				t.Errorf("%+v after %d requests", out, asked.Load())
			}
		})
	}
}

func TestRetryAfterIsKept(t *testing.T) {
	var last atomic.Int64
	b := behind(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !writes(r) || last.Load() != 0 {
			return false
		}
		last.Store(time.Now().UnixMilli())
		w.Header().Set("Retry-After", "1")
		status(w, 429, "TooManyRequests", "slow down")
		return true
	})
	b.apply(vedette.ByMode, configMap("c", nil))
	if waited := time.Now().UnixMilli() - last.Load(); waited < 1000 {
		t.Errorf("it waited %d ms", waited)
	}
	last.Store(0)
	out := b.op.Do(t.Context(), vedette.Operation{Deadline: time.Now().Add(500 * time.Millisecond),
		Args: vedette.ApplyArgs{Manifest: encode(t, configMap("c", object{"b": "2"})), Namespace: b.namespace}})
	if out.State != vedette.Failed || out.Status != 429 || out.Message != "slow down" {
		t.Errorf("what can't wait that long is %+v", out)
	}
}

// TestAnAnswerThatIsLost lets requests through and breaks off their answers.
func TestAnAnswerThatIsLost(t *testing.T) {
	var broken atomic.Int32
	b := behind(t, func(_ http.ResponseWriter, r *http.Request, pass http.Handler) bool {
		if !writes(r) || broken.Add(1) > 1 {
			return false
		}
		pass.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
	out := b.do(vedette.ApplyArgs{Manifest: encode(t, object{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"generateName": "g-", "labels": object{"generated": "yes"}}}), Namespace: b.namespace})
	if out.State != vedette.Lost || !strings.Contains(out.Message, "may have taken effect") {
		t.Errorf("a create is %+v", out)
	}
	if got := b.done(vedette.ListArgs{Target: b.target("configmap", ""), LabelSelector: "generated=yes"}); len(got.Objects) != 1 {
		t.Errorf("it was made %d times", len(got.Objects))
	}
	for _, s := range []vedette.Strategy{vedette.ClientSide, vedette.ServerSide, vedette.ReplaceObject} {
		broken.Store(0)
		b.apply(s, configMap("named", object{"by": string(s)}))
		if got := dig(b.live(core, "configmaps", "named"), "data", "by"); got != string(s) || broken.Load() < 2 {
			t.Errorf("%s left %v after %d requests", s, got, broken.Load())
		}
	}
	broken.Store(0)
	b.done(vedette.DeleteArgs{Target: b.target("configmap", "named")})
}

// TestWhatMayHaveBeenDoneIsLost answers the first request that writes in a way that
// leaves open whether it took effect, and all that follow with a no.
func TestWhatMayHaveBeenDoneIsLost(t *testing.T) {
	apply := vedette.ApplyArgs{Manifest: encode(t, configMap("open", object{"a": "1"}))}
	create := vedette.ApplyArgs{Manifest: apply.Manifest, Strategy: vedette.CreateOnly}
	broken := func(w http.ResponseWriter) { panic(http.ErrAbortHandler) }
	no := func(code int, reason, message string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { status(w, code, reason, message) }
	}
	for _, tt := range []struct {
		why         string
		args        vedette.ApplyArgs
		first, then func(http.ResponseWriter)
		state       vedette.OutcomeState
		says        string
	}{
		{"broken off, then down", apply, broken, no(503, "ServiceUnavailable", "not ready"), vedette.Lost, "not ready"},
		{"broken off, then refused", apply, broken, no(422, "Invalid", "not like this"), vedette.Lost, "not like this"},
		{"out of time, then refused", apply, no(504, "Timeout", "no time"), no(403, "Forbidden", "not you"), vedette.Lost, "not you"},
		{"etcd is gone", create, no(500, "", "etcdserver: request timed out"), nil, vedette.Lost, "etcdserver: request timed out"},
		{"out of time", create, no(504, "Timeout", "no time"), nil, vedette.Lost, "no time"},
		{"no from a load balancer", create, no(502, "", "bad gateway"), nil, vedette.Lost, "bad gateway"},
		{"no words at all", create, func(w http.ResponseWriter) { w.WriteHeader(502) }, nil, vedette.Lost, "502 Bad Gateway, without a word"},
		{"no from a webhook", create, no(500, "InternalError", "failed calling webhook"), nil, vedette.Failed, "failed calling webhook"},
		{"down, then refused", apply, no(503, "ServiceUnavailable", "not ready"), no(422, "Invalid", "not like this"), vedette.Failed, "not like this"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			var asked atomic.Int32
			b := behind(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if !writes(r) {
					return false
				}
				if asked.Add(1) == 1 {
					tt.first(w)
				} else {
					tt.then(w)
				}
				return true
			})
			tt.args.Namespace = b.namespace
			out := b.op.Do(t.Context(), vedette.Operation{Deadline: time.Now().Add(time.Second), Args: tt.args})
			if out.State != tt.state || !strings.Contains(out.Message, tt.says) {
				t.Errorf("got %s %d after %d requests: %s", out.State, out.Status, asked.Load(), out.Message)
			}
		})
	}
}

func TestAnAPIThatIsDown(t *testing.T) {
	b := newBench(t, operate.Config{})
	must(t, plane.Create(t.Context(), "/apis/apiregistration.k8s.io/v1/apiservices", object{"metadata": object{"name": "v1.down.example.com"},
		"spec": object{"group": "down.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
			"service": object{"name": "none", "namespace": b.namespace}, "insecureSkipTLSVerify": true}}))
	t.Cleanup(func() {
		must(t, plane.Delete(context.Background(), "/apis/apiregistration.k8s.io/v1/apiservices/v1.down.example.com"))
	})
	must(t, plane.Await(t.Context(), "/apis/apiregistration.k8s.io/v1/apiservices/v1.down.example.com", func(o object) bool {
		return dig(o, "status", "conditions", 0, "status") == "False"
	}))
	out := b.op.Do(t.Context(), vedette.Operation{Deadline: time.Now().Add(2 * time.Second), Args: vedette.ApplyArgs{Namespace: b.namespace,
		Manifest: []byte(`{"apiVersion":"down.example.com/v1","kind":"Thing","metadata":{"name":"a"}}`)}})
	if out.State != vedette.Failed || out.Status != 503 {
		t.Errorf("got %+v", out)
	}
	b.contains(out.Message, "down.example.com/v1 is down")
	b.fails(vedette.GetArgs{Target: b.target("thing.down.example.com", "a")}, 503, "down.example.com")
	b.apply(vedette.ByMode, configMap("others-work", nil))
}

func TestQuotaAndRBACTellTheirWords(t *testing.T) {
	b := newBench(t, operate.Config{})
	must(t, plane.Create(t.Context(), b.path(core, "resourcequotas", ""), object{"metadata": object{"name": "none"}, "spec": object{"hard": object{"count/services": "0"}}}))
	must(t, plane.Await(t.Context(), b.path(core, "resourcequotas", "none"), func(o object) bool { return dig(o, "status", "hard") != nil }))
	b.fails(vedette.ApplyArgs{Namespace: b.namespace, Manifest: []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`)},
		403, "exceeded quota: none")
	kubeconfig, err := plane.UserKubeconfig("nobody")
	must(t, err)
	c, err := watch.Connect(watch.Access{KubeconfigFile: kubeconfig}, watch.Options{})
	must(t, err)
	defer c.Close()
	if b.op, err = operate.New(c, operate.Config{}); err != nil {
		t.Fatal(err)
	}
	b.fails(vedette.ListArgs{Target: b.target("pods", "")}, 403, `User "nobody" cannot list resource "pods"`)
	b.fails(vedette.VersionArgs{Manifest: encode(t, secretOf("a")), Namespace: b.namespace}, 403, `User "nobody" cannot list resource "secrets"`)
	must(t, plane.Create(t.Context(), b.path("/apis/rbac.authorization.k8s.io/v1", "roles", ""), object{"metadata": object{"name": "some"},
		"rules": []any{object{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"*"}}}}))
	must(t, plane.Create(t.Context(), b.path("/apis/rbac.authorization.k8s.io/v1", "rolebindings", ""), object{"metadata": object{"name": "some"},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "some"},
		"subjects": []any{object{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}}}))
	must(t, plane.Await(t.Context(), "/api", func(object) bool {
		return b.do(vedette.ApplyArgs{Manifest: encode(t, configMap("c", nil)), Namespace: b.namespace}).State == vedette.Done
	}))
	for _, s := range []vedette.Strategy{vedette.ByMode, vedette.ClientSide, vedette.ReplaceObject, vedette.Recreate, vedette.CreateOnly} {
		b.fails(vedette.ApplyArgs{Manifest: encode(t, configMap("c", nil)), Namespace: "default", Strategy: s}, 403,
			`User "nobody" cannot`, `resource "configmaps" in API group "" in the namespace "default"`)
	}
}
