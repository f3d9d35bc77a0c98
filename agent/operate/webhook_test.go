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
)

// review is what an API server asks a webhook, and what it answers.
type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    *struct {
		UID string `json:"uid"`
	} `json:"request,omitempty"`
	Response *verdict `json:"response,omitempty"`
}

type verdict struct {
	UID      string   `json:"uid"`
	Allowed  bool     `json:"allowed"`
	Status   object   `json:"status,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// judged is a ConfigMap about which the webhook is asked.
func judged(name string) object { return toBeJudged(configMap(name, nil)) }

func toBeJudged(o object) object {
	o["metadata"].(object)["labels"] = object{"judged": "yes"}
	return o
}

// webhook has the API server ask a function about each judged ConfigMap or Secret that
// is written in the namespace, over HTTPS, and waits until it does.
func (b *bench) webhook(judge func() verdict) {
	b.Helper()
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in review
		if json.NewDecoder(r.Body).Decode(&in) != nil || in.Request == nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		v := verdict{Allowed: true}
		if asked.Add(1) > 1 { // the first was the probe below
			v = judge()
		}
		v.UID = in.Request.UID
		_ = json.NewEncoder(w).Encode(review{APIVersion: in.APIVersion, Kind: in.Kind, Response: &v})
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
		_ = plane.Patch(b.Context(), b.path(core, "configmaps", "probe"), judged("probe"))
		return asked.Load() > 0
	}))
}

func TestAWebhookThatDenies(t *testing.T) {
	b := newBench(t, operate.Config{})
	b.webhook(func() verdict {
		return verdict{Status: object{"code": 451, "message": "no ConfigMaps before breakfast"}}
	})
	for _, s := range []vedette.Strategy{vedette.ClientSide, vedette.ServerSide, vedette.ReplaceObject, vedette.Recreate, vedette.CreateOnly} {
		b.fails(vedette.ApplyArgs{Manifest: encode(t, judged("c")), Namespace: b.namespace, Strategy: s}, 451,
			`admission webhook "judge.example.com" denied the request: no ConfigMaps before breakfast`)
	}
}

// TestAWebhookThatHangs fails with the API server's words, which are no timeout
// by type, and passes where a user has such words tried again.
func TestAWebhookThatHangs(t *testing.T) {
	for _, tt := range []struct {
		why     string
		retries operate.Retries
		asked   int32
		ok      bool
	}{
		{"is not asked again", operate.Retries{}, 1, false},
		{"is asked again for its words", operate.Retries{Texts: []string{"", "Deadline Exceeded"}}, 3, true},
		{"or whatever they are", operate.Retries{Any: true}, 3, true},
		{"but not for others", operate.Retries{Texts: []string{"timeout of another sort"}}, 1, false},
		{"as often as is said", operate.Retries{Any: true, Most: 1}, 2, false},
		{"or not at all", operate.Retries{Any: true, Off: true}, 1, false},
	} {
		t.Run(tt.why, func(t *testing.T) {
			b := newBench(t, operate.Config{})
			var asked atomic.Int32
			hang := make(chan struct{})
			b.webhook(func() verdict {
				if asked.Add(1) < 3 {
					<-hang
				}
				return verdict{Allowed: true}
			})
			t.Cleanup(func() { close(hang) })
			b.op = b.another(operate.Config{Retries: tt.retries, FirstRetry: time.Millisecond})
			out := b.do(vedette.ApplyArgs{Manifest: encode(t, judged("c")), Namespace: b.namespace})
			if (out.State == vedette.Done) != tt.ok || asked.Load() != tt.asked {
				t.Errorf("%s after %d questions: %d %s: %s", out.State, asked.Load(), out.Status, out.Reason, out.Message)
			}
			if !tt.ok && out.Status != 500 {
				t.Errorf("the status is %d", out.Status)
			}
			if !tt.ok {
				b.contains(out.Message, "failed calling webhook")
			}
		})
	}
}
