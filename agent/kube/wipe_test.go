package kube

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestSecretsAreReadWithoutKnownTLSFields simulates a Go release whose crypto/tls has
// other fields. Only a client that must wipe them stops reading Secrets.
func TestSecretsAreReadWithoutKnownTLSFields(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	for _, tt := range []struct {
		name string
		wipe *tlsWiper
		want error
	}{
		{"wiping is off", nil, nil},
		{"wiping is on, fields are known", newTLSWiper(), nil},
		{"wiping is on, fields are unknown", &tlsWiper{}, ErrCannotWipe},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Connect(Access{KubeconfigContents: []byte(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: "` + server.URL + `"}}]}`), Insecure: true}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.wipe = tt.wipe
			resp, err := c.Do(t.Context(), Request{Path: "/api/v1/secrets", WipeBuffers: true})
			if err == nil {
				resp.Body.Close()
			}
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("got error %v, want %v", err, tt.want)
			}
		})
	}
}
