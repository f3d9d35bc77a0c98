package upstream

import (
	"net/http"

	"github.com/vedette-io/vedette"
)

// serveTask answers for a task of this server, and passes on other tasks. IDs do not tell them apart:
// both are ULIDs.
func (h *Handler) serveTask(w http.ResponseWriter, r *http.Request, id string) error {
	if h.tasks == nil {
		return h.forward(w, r)
	}
	_, err := h.tasks.Get(r.Context(), id)
	if vedette.KindOf(err) == vedette.NotFound {
		return h.forward(w, r)
	}
	h.own.ServeHTTP(w, r) // it reports any other error
	return nil
}
