package kube_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
)

// TestNamespacesWithLargeAnnotations checks that a cluster with large annotations on its
// namespaces can be identified.
func TestNamespacesWithLargeAnnotations(t *testing.T) {
	note := strings.Repeat("x", 24<<10)
	server := kubetest.NewServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces" {
			fmt.Fprint(w, `{"gitVersion":"v1.34.0","metadata":{"uid":"u"}}`)
			return
		}
		fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[`)
		for i := range 500 {
			fmt.Fprintf(w, `{"metadata":{"name":"n%d","annotations":{"note":"%s"}}},`, i, note)
		}
		fmt.Fprint(w, `{"metadata":{"name":"last"}}]}`)
	})
	if _, namespaces, err := kubetest.Connect(t, server, kube.Options{}).Identify(t.Context()); err != nil || len(namespaces) != 501 {
		t.Errorf("got %d namespaces and error %v, want 501", len(namespaces), err)
	}
}
