package upstream

import (
	"net/http"
	"net/url"
)

// serveTask answers for a task of this server, and passes on other tasks. IDs do not tell them apart:
// both are ULIDs.
func (h *Handler) serveTask(w http.ResponseWriter, r *http.Request, id string) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return h.readTask(w, r)
	}
	// Whether the task is there is asked before the body is read.
	if h.localStatus(r, &url.URL{Path: "/task/" + id, RawPath: "/task/" + url.PathEscape(id)}) == http.StatusNotFound {
		return h.forward(w, r)
	}
	h.local.ServeHTTP(w, r)
	return nil
}

// readTask answers itself unless it answers that there is no such task.
func (h *Handler) readTask(w http.ResponseWriter, r *http.Request) error {
	local := newRecorder(w, nil, http.StatusNotFound)
	h.local.ServeHTTP(local, r)
	if local.isMissing() {
		return h.forward(w, r)
	}
	return nil
}

// serveByID answers for what this server has, and passes on the rest. What neither side has is missing in this server's words, because a
// Clouddriver without the plugin only says that it does not have the path.
func (h *Handler) serveByID(w http.ResponseWriter, r *http.Request, found route) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		local := newRecorder(w, nil, http.StatusNotFound)
		h.local.ServeHTTP(local, r)
		if !local.isMissing() {
			return nil
		}
		if err := checkPath(r.URL); err != nil {
			return err
		}
		return h.proxyTo(&missingWriter{ResponseWriter: w, write: local.sendMissing}, r)
	}
	id := found.params[idParam]
	local := h.askLocalPath(r, &url.URL{Path: "/" + found.ownerPath + id, RawPath: "/" + found.ownerPath + url.PathEscape(id)})
	switch local.status {
	case http.StatusOK:
		h.local.ServeHTTP(w, r)
		return nil
	case http.StatusNotFound:
		return h.forward(w, r)
	}
	local.copyTo(w) // this server cannot tell
	return nil
}

// statusOnly is a response of which only the status counts.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header { return s.header }

// WriteHeader implements http.ResponseWriter.
func (s *statusOnly) WriteHeader(status int) {
	if s.status == 0 {
		s.status = status
	}
}

func (s *statusOnly) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	return len(p), nil
}

// localStatus returns the status of this server's answer to a GET request for the same caller.
func (h *Handler) localStatus(r *http.Request, path *url.URL) int {
	inner := readRequest(r)
	inner.URL = path
	answer := &statusOnly{header: http.Header{}}
	h.local.ServeHTTP(answer, inner)
	return answer.status
}
