package kube_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
)

// TestServiceAddresses reads the endpoints of a Service from EndpointSlices and from Endpoints.
func TestServiceAddresses(t *testing.T) {
	const slicesPath, endpointsPath = "/apis/discovery.k8s.io/v1/namespaces/spin/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dgrpc-svc",
		"/api/v1/namespaces/spin/endpoints/grpc-svc"
	slice := func(ports string, endpoints ...string) string {
		return `{"metadata":{"name":"x"},"addressType":"IPv4","ports":[` + ports + `],"endpoints":[` + strings.Join(endpoints, ",") + `]}`
	}
	list := func(items ...string) string {
		return `{"kind":"EndpointSliceList","metadata":{"resourceVersion":"1"},"items":[` + strings.Join(items, ",") + `]}`
	}
	const ready, starting, unknown, name = `{"addresses":["10.0.0.1"],"conditions":{"ready":true}}`, `{"addresses":["10.0.0.2"],"conditions":{"ready":false}}`,
		`{"addresses":["10.0.0.3"]}`, `{"addresses":["db.example.com"]}`
	const grpcPort, restPort, otherPort = `{"name":"grpc","port":9091}`, `{"name":"http","port":7002}`, `{"name":"x","port":19091}`
	endpoints := `{"subsets":[{"addresses":[{"ip":"10.0.0.9"},{"ip":"10.0.0.8"}],"notReadyAddresses":[{"ip":"10.0.0.7"}],"ports":[` + restPort + `,` + grpcPort + `]}]}`
	for _, tt := range []struct {
		name, slices, endpoints, port string // an empty response is 403
		want                          []string
		err                           string
	}{
		{"only ready endpoints", list(slice(grpcPort, ready, starting, unknown, name)), "", "9091", []string{"10.0.0.1:9091", "10.0.0.3:9091"}, ""},
		{"several slices", list(slice(grpcPort, ready), slice(grpcPort, `{"addresses":["2001:db8::1"]}`)), "", "9091", []string{"10.0.0.1:9091", "[2001:db8::1]:9091"}, ""},
		{"the port with the number", list(slice(restPort+","+grpcPort, ready)), "", "7002", []string{"10.0.0.1:7002"}, ""},
		{"the only port", list(slice(otherPort, ready)), "", "9091", []string{"10.0.0.1:19091"}, ""},
		{"the port with the name", list(slice(otherPort+","+grpcPort, ready)), "", "443", []string{"10.0.0.1:9091"}, ""},
		{"no port that fits", list(slice(otherPort+","+restPort, ready)), "", "443", nil, "no ready endpoint with port 443"},
		{"no endpoint", list(), endpoints, "9091", nil, "Service grpc-svc in namespace spin has no ready endpoint"},
		{"no right to list slices", "", endpoints, "9091", []string{"10.0.0.9:9091", "10.0.0.8:9091"}, ""},
		{"no rights", "", "", "9091", nil, "endpoints/grpc-svc"},
		{"not JSON", "<html>", endpoints, "9091", nil, "endpointslices"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := kubetest.NewServer(t, func(w http.ResponseWriter, r *http.Request) {
				body := map[string]string{slicesPath: tt.slices, endpointsPath: tt.endpoints}[r.URL.RequestURI()]
				if body == "" {
					w.WriteHeader(http.StatusForbidden)
					body = `{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}`
				}
				fmt.Fprint(w, body)
			})
			got, err := kubetest.Connect(t, server, kube.Options{}).ServiceAddresses(t.Context(), "spin", "grpc-svc", tt.port)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, %v, want an error with %q", got, err, tt.err)
				}
				return
			}
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}
