package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/vedette-io/vedette"
)

// httpStatusByKind says how each sort of failure is answered. What is not here is
// internal.
var httpStatusByKind = map[vedette.ErrorKind]int{
	vedette.Invalid:     http.StatusBadRequest,
	vedette.NotFound:    http.StatusNotFound,
	vedette.Conflict:    http.StatusConflict,
	vedette.Denied:      http.StatusForbidden,
	vedette.Unavailable: http.StatusServiceUnavailable,
}

type errorBody struct {
	Error errorView `json:"error"`
}

type errorView struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	ID      string `json:"id,omitempty"` // under which an internal error is in the log
}

// handleErrors runs a handler that may fail before it has written anything.
func (a *api) handleErrors(handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			a.fail(w, r, err)
		}
	}
}

func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return // nobody listens any more
	}
	view := a.publicError(r, err)
	status := httpStatusByKind[vedette.ErrorKind(view.Kind)]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	writeErrorView(w, status, view)
}

// publicError says of an error what a reader may see of it, and logs the rest.
func (a *api) publicError(r *http.Request, err error) errorView {
	var public *vedette.Error
	if errors.As(err, &public) && httpStatusByKind[public.Kind] != 0 {
		if public.Kind == vedette.Unavailable {
			a.Log.Warn("request cannot be answered now", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		return errorView{Kind: string(public.Kind), Message: public.Message}
	}
	id := rand.Text()[:10]
	a.Log.Error("internal error", "id", id, "method", r.Method, "path", r.URL.Path, "error", err)
	return errorView{Kind: "internal", Message: "internal error", ID: id}
}

// retryAfter is after how many seconds to try again what can't be answered now.
const retryAfter = "5"

func writeError(w http.ResponseWriter, status int, kind, message string) {
	writeErrorView(w, status, errorView{Kind: kind, Message: message})
}

func writeErrorView(w http.ResponseWriter, status int, view errorView) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	// The reader may be gone; there is no one else to tell.
	_ = json.NewEncoder(w).Encode(errorBody{view})
}
