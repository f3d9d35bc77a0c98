package kube

import (
	"net/http"
	"strings"
	"time"
)

// measuredTransport calls Options.OnResponse for each request.
type measuredTransport struct {
	http.RoundTripper
	onResponse func(verb string, status int, took time.Duration)
}

func (t measuredTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	resp, err := t.RoundTripper.RoundTrip(r)
	status := 0
	if err == nil {
		status = resp.StatusCode
	}
	t.onResponse(verbOf(r), status, time.Since(start))
	return resp, err
}

// verbOf returns the verb of a request, as RBAC and the audit log of an API server name it. A GET
// with a limit is a list; without one only its path would tell a list from a single object.
func verbOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet:
		query := r.URL.Query()
		switch {
		case query.Get("watch") == "true":
			return "watch"
		case query.Has("limit"):
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	}
	return strings.ToLower(r.Method)
}
