package kube

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// TestErrorsDoNotQuoteCredentials checks that the bodies of errors lose the credentials of their
// requests, whatever their length, and that other bodies stay as they are.
func TestErrorsDoNotQuoteCredentials(t *testing.T) {
	filler := strings.Repeat("x", 100<<10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.URL.Path != "/ok" {
			w.WriteHeader(http.StatusBadGateway)
		}
		for range 2 {
			_, _ = io.WriteString(w, filler+r.Header.Get("Authorization")+" of "+user+" with "+password)
			if r.URL.Path == "/chunked" {
				w.(http.Flusher).Flush()
			}
		}
	}))
	defer server.Close()
	for path, want := range map[string]bool{"/ok": true, "/known": false, "/chunked": false} {
		for name, authorize := range map[string]func(*http.Request){
			"token":    func(r *http.Request) { r.Header.Set("Authorization", "Bearer hunter2-token") },
			"password": func(r *http.Request) { r.SetBasicAuth("agent", "hunter2-password") },
			"nothing":  func(r *http.Request) { r.Header.Set("X-Other", "hunter2") },
			"short":    func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") },
		} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
			r.RequestURI = ""
			authorize(r)
			resp, err := maskingTransport{http.DefaultTransport}.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(iotest.HalfReader(resp.Body))
			resp.Body.Close()
			if err != nil || strings.Count(string(body), filler) != 2 {
				t.Errorf("%s, %s: got %d bytes, %v, want all", path, name, len(body), err)
			}
			_, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			quotes := strings.Contains(string(body), "hunter2") || len(sent) > 4 && strings.Contains(string(body), sent)
			if quotes != (want && name != "nothing" && name != "short") {
				t.Errorf("%s, %s: got a credential %v", path, name, quotes)
			}
		}
	}
}
