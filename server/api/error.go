package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/rest"
)

// httpStatusByKind is the HTTP status of each kind of error. Other kinds are internal errors.
var httpStatusByKind = map[vedette.ErrorKind]int{
	vedette.Invalid:     http.StatusBadRequest,
	vedette.NotFound:    http.StatusNotFound,
	vedette.Conflict:    http.StatusConflict,
	vedette.Denied:      http.StatusForbidden,
	vedette.Unavailable: http.StatusServiceUnavailable,
	vedette.UnknownKind: http.StatusBadRequest,
	vedette.NotCached:   http.StatusConflict,
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
	if rest.HasEnded(r, err) {
		writeErrorView(w, http.StatusServiceUnavailable, errorView{Kind: string(vedette.Unavailable), Message: rest.StoppedMessage})
		return
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
	if public, ok := errors.AsType[*vedette.Error](err); ok && httpStatusByKind[public.Kind] != 0 {
		if public.Kind == vedette.Unavailable {
			a.Log.WarnContext(r.Context(), "cannot answer request now", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		view := errorView{Kind: string(public.Kind), Message: public.Message}
		if unknown, ok := errors.AsType[accountfeeds.UnknownError](err); ok {
			view.Message = cmp.Or(a.explainAbsence(r.Context(), unknown), view.Message)
		}
		return view
	}
	return errorView{Kind: "internal", Message: "internal error", ID: rest.LogInternal(a.Log, r, err)}
}

// explainAbsence returns the error about an account that an agent has, but could not register; "" if no agent has it. Its reason is in
// the list of agents.
func (a *api) explainAbsence(ctx context.Context, unknown accountfeeds.UnknownError) string {
	for _, agent := range a.Fleet.AgentsOf(ctx, unknown.Account) {
		role := agent.Accounts[slices.IndexFunc(agent.Accounts, func(x AgentAccount) bool { return x.Name == unknown.Account })].Role
		if role != Refused && role != Reaching { // it has registered it just now
			continue
		}
		return fmt.Sprintf("%s: agent %s has it, and could not register it: `vedette agents` says why", unknown.Text, agent.ID)
	}
	return ""
}

func writeError(w http.ResponseWriter, status int, kind, message string) {
	writeErrorView(w, status, errorView{Kind: kind, Message: message})
}

func writeErrorView(w http.ResponseWriter, status int, view errorView) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", rest.RetryAfter)
	}
	w.WriteHeader(status)
	// An error means that the client is gone.
	_ = json.NewEncoder(w).Encode(errorBody{view})
}
