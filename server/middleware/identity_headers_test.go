package middleware

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAmbiguousIdentityIsRejected(t *testing.T) {
	var passed http.Header
	handler := RejectAmbiguousIdentity(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { passed = r.Header }))
	for _, tt := range []struct {
		name   string
		values []string
		status int
	}{
		{"X-SPINNAKER-USER", []string{"dev"}, 200}, {"X-SPINNAKER-USER", []string{"dev", "admin"}, 400}, {"x-spinnaker-user", []string{"dev", "dev"}, 200},
		{"X-SPINNAKER-USER", []string{"dev", "admin", "dev"}, 400}, {"X-SPINNAKER-USER", []string{"dev", ""}, 400},
		{"X-SPINNAKER-ACCOUNTS", []string{"a,b"}, 200}, {"X-SPINNAKER-ACCOUNTS", []string{"a,b", "a,b"}, 200}, {"X-SPINNAKER-ACCOUNTS", []string{"a", "b"}, 400}, {"X-SPINNAKER-ORIGIN", []string{"a", "b"}, 200},
		{"X-SPINNAKER-USER", []string{strings.Repeat("u", 255)}, 200}, {"X-SPINNAKER-USER", []string{strings.Repeat("u", 256)}, 400},
	} {
		r := httptest.NewRequest(http.MethodGet, "/credentials", nil)
		for _, value := range tt.values {
			r.Header.Add(tt.name, value)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%s %q: got %d, want %d", tt.name, tt.values, w.Code, tt.status)
		}
		if got := passed.Values(tt.name); w.Code == 200 && tt.name != "X-SPINNAKER-ORIGIN" && len(got) != 1 {
			t.Errorf("%s %q: got %q passed on, want one value", tt.name, tt.values, got)
		}
	}
}
