package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/vedette-io/vedette"
)

// httpStatusByKind is the HTTP status of each kind of error. Other kinds are internal errors.
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
	ID      string `json:"id,omitempty"` // of an internal error in the log
}

// handleErrors wraps a handler that can fail before it writes anything.
func (a *api) handleErrors(handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			a.fail(w, r, err)
		}
	}
}

func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return // the client is gone
	}
	view := a.publicError(r, err)
	status := httpStatusByKind[vedette.ErrorKind(view.Kind)]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	writeErrorView(w, status, view)
}

// publicError returns the part of an error that clients may see, and logs the rest.
func (a *api) publicError(r *http.Request, err error) errorView {
	var public *vedette.Error
	if errors.As(err, &public) && httpStatusByKind[public.Kind] != 0 {
		if public.Kind == vedette.Unavailable {
			a.Log.WarnContext(r.Context(), "cannot answer request now", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		return errorView{Kind: string(public.Kind), Message: public.Message}
	}
	id := rand.Text()[:10]
	a.Log.ErrorContext(r.Context(), "internal error", "id", id, "method", r.Method, "path", r.URL.Path, "error", err)
	return errorView{Kind: "internal", Message: "internal error", ID: id}
}

// retryAfter is the value of Retry-After in seconds if the server is unavailable.
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
	// An error means that the client is gone.
	_ = json.NewEncoder(w).Encode(errorBody{view})
}
