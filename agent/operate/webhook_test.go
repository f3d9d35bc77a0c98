//go:build linux

package operate_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// admissionReview is the request of an API server to a webhook, and the response.
type admissionReview struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    *struct {
		UID string `json:"uid"`
	} `json:"request,omitempty"`
	Response *admissionResponse `json:"response,omitempty"`
}

type admissionResponse struct {
	UID      string   `json:"uid"`
	Allowed  bool     `json:"allowed"`
	Status   object   `json:"status,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// reviewedConfigMap is a ConfigMap that is sent to the webhook.
func reviewedConfigMap(name string) object { return withReviewLabel(configMap(name, nil)) }

func withReviewLabel(o object) object {
	o["metadata"].(object)["labels"] = object{"judged": "yes"}
	return o
}

// createWebhook registers a webhook for each marked ConfigMap or Secret that is written in the namespace,
// and waits until the API server calls it.
func (b *testbed) createWebhook(respond func() admissionResponse) {
	b.Helper()
	var requests atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in admissionReview
		if json.NewDecoder(r.Body).Decode(&in) != nil || in.Request == nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		v := admissionResponse{Allowed: true}
		if requests.Add(1) > 1 { // the first was the probe below
			v = respond()
		}
		v.UID = in.Request.UID
		_ = json.NewEncoder(w).Encode(admissionReview{APIVersion: in.APIVersion, Kind: in.Kind, Response: &v})
	}))
	b.Cleanup(server.Close)
	path := "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	must(b, plane.Create(b.Context(), path, object{"metadata": object{"name": b.namespace}, "webhooks": []any{object{
		"name": "judge.example.com", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 1,
		"clientConfig":      object{"url": server.URL + "/judge", "caBundle": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
		"namespaceSelector": object{"matchLabels": object{"kubernetes.io/metadata.name": b.namespace}},
		"objectSelector":    object{"matchLabels": object{"judged": "yes"}},
		"rules":             []any{object{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps", "secrets"}, "operations": []any{"CREATE", "UPDATE"}}}}}}))
	b.Cleanup(func() { must(b, plane.Delete(context.Background(), path+"/"+b.namespace)) })
	must(b, plane.Create(b.Context(), b.path(core, "configmaps", ""), configMap("probe", nil)))
	must(b, plane.Await(b.Context(), b.path(core, "configmaps", "probe"), func(object) bool {
		_ = plane.Patch(b.Context(), b.path(core, "configmaps", "probe"), reviewedConfigMap("probe"))
		return requests.Load() > 0
	}))
}

func TestWebhookDenialKeepsItsWords(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createWebhook(func() admissionResponse {
		return admissionResponse{Status: object{"code": 451, "message": "no ConfigMaps before breakfast"}}
	})
	for _, s := range []vedette.Strategy{vedette.StrategyClientSide, vedette.StrategyServerSide, vedette.StrategyReplace, vedette.StrategyRecreate, vedette.StrategyCreateOnly} {
		b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, reviewedConfigMap("c")), Namespace: b.namespace, Strategy: s}, 451,
			`admission webhook "judge.example.com" denied the request: no ConfigMaps before breakfast`)
	}
}

// TestTimeoutOfWebhookIsRetried checks that the timeout of a webhook fails with the message of the API server, and
// that it is retried if the configuration has a part of the message.
func TestTimeoutOfWebhookIsRetried(t *testing.T) {
	for _, tt := range []struct {
		name     string
		retries  request.RetryPolicy
		requests int32
		ok       bool
	}{
		{"is not asked again", request.RetryPolicy{}, 1, false},
		{"is asked again for its words", request.RetryPolicy{ErrorSubstrings: []string{"", "Deadline Exceeded"}}, 3, true},
		{"or whatever they are", request.RetryPolicy{AnyError: true}, 3, true},
		{"but not for others", request.RetryPolicy{ErrorSubstrings: []string{"timeout of another sort"}}, 1, false},
		{"as often as is said", request.RetryPolicy{AnyError: true, MaxRetries: 1}, 2, false},
		{"or not at all", request.RetryPolicy{AnyError: true, Disabled: true}, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newTestbed(t, operate.Config{})
			var requests atomic.Int32
			hang := make(chan struct{})
			b.createWebhook(func() admissionResponse {
				if requests.Add(1) < 3 {
					<-hang
				}
				return admissionResponse{Allowed: true}
			})
			t.Cleanup(func() { close(hang) })
			b.op = b.newOperator(operate.Config{Requests: request.Config{Retry: tt.retries, InitialBackoff: time.Millisecond}})
			out := b.execute(vedette.ApplyArgs{Manifest: encode(t, reviewedConfigMap("c")), Namespace: b.namespace})
			if (out.State == vedette.Done) != tt.ok || requests.Load() != tt.requests {
				t.Errorf("got %s after %d requests: %d %s: %s", out.State, requests.Load(), out.Status, out.Reason, out.Message)
			}
			if !tt.ok && out.Status != 500 {
				t.Errorf("got status %d", out.Status)
			}
			if !tt.ok {
				b.wantContains(out.Message, "failed calling webhook")
			}
		})
	}
}
