package request

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/internal/logging"
)

// TestRequestsAreLogged checks that each request has a line with the ids of its context, also one
// that fails, and that no line contains a body.
func TestRequestsAreLogged(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","message":"hunter2 in the response"}`)
	}))
	defer server.Close()
	kubeconfig := fmt.Sprintf(`{clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}]}`, server.URL)
	cluster, err := kube.Connect(kube.Access{KubeconfigContents: []byte(kubeconfig)}, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	var out strings.Builder
	log, err := logging.New(logging.Config{Level: "debug"}, &out, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewClient(cluster, Config{Log: log, Retry: RetryPolicy{Disabled: true}})
	if err != nil {
		t.Fatal(err)
	}
	p := Path{Resource: vedette.Resource{Kind: vedette.Kind{Name: "ConfigMap"}, Version: "v1", Plural: "configmaps", Namespaced: true}, Namespace: "n", Name: "c"}
	ctx := logging.WithAttrs(t.Context(), slog.String("operation", "01J"))
	for _, method := range []string{http.MethodPost, http.MethodPatch} {
		if _, _, err := o.NewSender(vedette.Operation{}, Control{}).Do(ctx, p, Request{Method: method, Body: []byte("hunter2 in the request")}); err == nil {
			t.Errorf("%s succeeded", method)
		}
	}
	lines := out.String()
	for _, want := range []string{"method=POST path=/api/v1/namespaces/n/configmaps", "status=403", "method=PATCH", "status=0"} {
		if !strings.Contains(lines, want) {
			t.Errorf("no line contains %s: %s", want, lines)
		}
	}
	if strings.Count(lines, "operation=01J") != 3 || strings.Contains(lines, "hunter2") {
		t.Errorf("got %s", lines)
	}
}
