package upstream

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette/internal/exactjson"
)

// responseBuffer is a response that is kept in memory.
type responseBuffer struct {
	header http.Header
	status int
	body   []byte
}

func newResponseBuffer() *responseBuffer { return &responseBuffer{header: http.Header{}} }

func (c *responseBuffer) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter.
func (c *responseBuffer) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
}

func (c *responseBuffer) Write(p []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	c.body = append(c.body, p...)
	return len(p), nil
}

func (c *responseBuffer) copyTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), c.header)
	w.WriteHeader(max(c.status, http.StatusOK))
	_, _ = w.Write(c.body) // the client may have disconnected
}

// askLocal returns this server's answer to a GET request for the same caller.
func (h *Handler) askLocal(r *http.Request, path string) *responseBuffer {
	return h.askLocalPath(r, &url.URL{Path: path})
}

func (h *Handler) askLocalPath(r *http.Request, path *url.URL) *responseBuffer {
	inner := readRequest(r)
	inner.URL = path
	c := newResponseBuffer()
	h.local.ServeHTTP(c, inner)
	return c
}

// readRequest returns a request without a body that reads a whole, uncompressed answer.
func readRequest(r *http.Request) *http.Request {
	inner := r.Clone(r.Context())
	inner.Method = http.MethodGet
	inner.Body = http.NoBody
	inner.ContentLength = 0
	inner.Header = readHeader(r.Header)
	return inner
}

// serveLocal answers an endpoint that this server always answers. Health gets a component for the upstream
// Clouddriver, which has no effect on the status: without it agents' accounts still work.
func (h *Handler) serveLocal(w http.ResponseWriter, r *http.Request, found route) {
	if found.Pattern != "health" || !found.Accepts(r.Method) {
		h.local.ServeHTTP(w, r)
		return
	}
	answer := newResponseBuffer()
	h.local.ServeHTTP(answer, readRequest(r))
	answer.body = h.client.stats.health().addTo(answer.body)
	answer.copyTo(w)
}

// addTo adds the state as a component to the JSON of a health answer. Other answers stay unchanged.
func (s healthDetails) addTo(health []byte) []byte {
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
