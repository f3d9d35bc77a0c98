package upstream

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette/internal/exactjson"
)

// capture is a response that is kept in memory.
type capture struct {
	header http.Header
	status int
	body   []byte
}

func newCapture() *capture { return &capture{header: http.Header{}} }

// Header implements http.ResponseWriter.
func (c *capture) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter.
func (c *capture) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
}

func (c *capture) Write(p []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	c.body = append(c.body, p...)
	return len(p), nil
}

// copyTo sends the response.
func (c *capture) copyTo(w http.ResponseWriter) {
	copyHeader(w.Header(), c.header)
	w.WriteHeader(max(c.status, http.StatusOK))
	_, _ = w.Write(c.body) // the client may have disconnected
}

func copyHeader(to, from http.Header) {
	for name, values := range from {
		to[name] = values
	}
}

// askOwn returns this server's answer to a GET request for the same caller.
func (h *Handler) askOwn(r *http.Request, path string) *capture {
	return h.askOwnPath(r, &url.URL{Path: path})
}

func (h *Handler) askOwnPath(r *http.Request, path *url.URL) *capture {
	inner := readRequest(r)
	inner.URL = path
	c := newCapture()
	h.own.ServeHTTP(c, inner)
	return c
}

// readRequest returns a request without a body that reads a whole, uncompressed answer.
func readRequest(r *http.Request) *http.Request {
	inner := r.Clone(r.Context())
	inner.Method, inner.Body, inner.ContentLength = http.MethodGet, http.NoBody, 0
	inner.Header = readHeader(r.Header)
	return inner
}

// serveOwn answers an endpoint that is always own. Health gets a component for the upstream
// Clouddriver, which has no effect on the status: without it agents' accounts still work.
func (h *Handler) serveOwn(w http.ResponseWriter, r *http.Request, found route) {
	if found.Pattern != "health" || !found.accepts(r.Method) {
		h.own.ServeHTTP(w, r)
		return
	}
	answer := newCapture()
	h.own.ServeHTTP(answer, readRequest(r))
	answer.body = h.client.stats.snapshot().addTo(answer.body)
	answer.copyTo(w)
}

// addTo adds the state as a component to the JSON of a health answer. Other answers stay unchanged.
func (s snapshot) addTo(health []byte) []byte {
	var view map[string]any
	if err := exactjson.Unmarshal(health, &view, exactjson.Limits{}); err != nil {
		return health
	}
	components, ok := view["components"].(map[string]any)
	if !ok {
		return health
	}
	components["upstream"] = map[string]any{"status": s.status(), "details": s}
	extended, err := json.Marshal(view)
	if err != nil {
		return health
	}
	return append(extended, '\n')
}
