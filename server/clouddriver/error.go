package clouddriver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
)

const notFoundException = "com.netflix.spinnaker.kork.web.exceptions.NotFoundException"

// fault is what an error becomes in Clouddriver's terms.
type fault struct {
	status    int
	exception string
}

var faults = map[vedette.ErrorKind]fault{
	vedette.Invalid:     {http.StatusBadRequest, "java.lang.IllegalArgumentException"},
	vedette.NotFound:    {http.StatusNotFound, notFoundException},
	vedette.Conflict:    {http.StatusConflict, "com.netflix.spinnaker.kork.web.exceptions.InvalidRequestException"},
	vedette.Denied:      {http.StatusForbidden, "org.springframework.security.access.AccessDeniedException"},
	vedette.Unavailable: {http.StatusServiceUnavailable, "com.netflix.spinnaker.kork.exceptions.IntegrationException"},
}

// errorBody has no path, as Clouddriver's has none.
type errorBody struct {
	Timestamp string `json:"timestamp"`
	Status    int    `json:"status"`
	Error     string `json:"error"`
	Exception string `json:"exception"`
	Message   string `json:"message"`
}

// readFailure is a manifest that there may be and that can't be read:
// Clouddriver answers it with 500, which Orca takes for "try again", where 404
// would mean that it is gone.
type readFailure struct{ message string }

func (e *readFailure) Error() string { return e.message }

func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return // nobody listens any more
	}
	var failure *readFailure
	if errors.As(err, &failure) {
		writeError(w, http.StatusInternalServerError, "java.lang.IllegalStateException", failure.message)
		return
	}
	var shown *vedette.Error
	if errors.As(err, &shown) && faults[shown.Kind].status != 0 {
		f := faults[shown.Kind]
		writeError(w, f.status, f.exception, shown.Message)
		return
	}
	id := rand.Text()[:10]
	a.Log.Error("internal error", "id", id, "method", r.Method, "path", r.URL.Path, "error", err)
	writeError(w, http.StatusInternalServerError, "java.lang.IllegalStateException", "internal error; the server's log tells more under id "+id)
}

func writeError(w http.ResponseWriter, status int, exception, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The reader may be gone; there is no one else to tell.
	_ = json.NewEncoder(w).Encode(errorBody{Timestamp: time.Now().UTC().Format("2006-01-02T15:04:05.000+00:00"), Status: status,
		Error: http.StatusText(status), Exception: exception, Message: message})
}
