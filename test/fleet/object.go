package fleet

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
)

// serveObject serves a single object.
func (q *query) serveObject(w http.ResponseWriter, r *http.Request, name string) {
	o, exists := q.registry.find(q.cluster.sample, q.namespace, name)
	switch {
	case !exists:
		q.writeNotFound(w, name)
	case r.Method == http.MethodGet:
		q.cluster.fleet.counts.gets.Add(1)
		_, _ = w.Write(q.append(nil, o.i, o.version.revision())) // the client may have disconnected
	case r.Method == http.MethodPatch:
		q.cluster.fleet.counts.patches.Add(1)
		q.patch(w, r, o.i, name)
	default:
		writeStatus(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "simulated clusters support only reading and patching objects")
	}
}

func (q *query) writeNotFound(w http.ResponseWriter, name string) {
	writeStatus(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", q.registry.Plural, name))
}

var patchTypes = []string{"application/strategic-merge-patch+json", "application/merge-patch+json", "application/json-patch+json"}

// patch gives an object a new version, notifies watches, and responds with the object. It ignores
// the content of the patch, because an object depends only on its version.
func (q *query) patch(w http.ResponseWriter, r *http.Request, i int, name string) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || !slices.Contains(patchTypes, kind) {
		writeStatus(w, http.StatusUnsupportedMediaType, "UnsupportedMediaType", "simulated clusters support strategic, merge and JSON patches")
		return
	}
	var body json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		writeStatus(w, http.StatusBadRequest, "BadRequest", "the patch is not JSON: "+err.Error())
		return
	}
	revision, exists := q.registry.change(i)
	if !exists {
		q.writeNotFound(w, name)
		return
	}
	_, _ = w.Write(q.append(nil, i, revision)) // the client may have disconnected
}
