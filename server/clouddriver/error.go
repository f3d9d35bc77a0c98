package clouddriver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/artifacts"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/task"
)

const notFoundException = "com.netflix.spinnaker.kork.web.exceptions.NotFoundException"

// exceptionMapping is the status and the exception that Clouddriver uses for an error.
type exceptionMapping struct {
	status    int
	exception string
}

var exceptionByKind = map[vedette.ErrorKind]exceptionMapping{
	vedette.Invalid:     {http.StatusBadRequest, "java.lang.IllegalArgumentException"},
	vedette.NotFound:    {http.StatusNotFound, notFoundException},
	vedette.Conflict:    {http.StatusConflict, "com.netflix.spinnaker.kork.web.exceptions.InvalidRequestException"},
	vedette.Denied:      {http.StatusForbidden, "org.springframework.security.access.AccessDeniedException"},
	vedette.Unavailable: {http.StatusServiceUnavailable, "com.netflix.spinnaker.kork.exceptions.IntegrationException"},
}

// errorBody has no path, because Clouddriver's has none.
type errorBody struct {
	Timestamp string `json:"timestamp"`
	Status    int    `json:"status"`
	Error     string `json:"error"`
	Exception string `json:"exception"`
	Message   string `json:"message"`

	Errors []string `json:"errors,omitempty"` // validation errors; Orca shows them before the message
}

// readError means that a manifest may exist but cannot be read. It is never answered with status
// 404, after which Orca assumes that the manifest is deleted.
type readError struct {
	message     string
	unknownKind bool // the cluster answered, and serves no such kind
	// unavailable means that nobody answered: no agent, or not the cluster. The status is 503, after which all
	// of Spinnaker's services try again. Otherwise it is 500, as in Clouddriver.
	unavailable bool
}

func (e *readError) Error() string { return e.message }

func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return // the client is gone
	}
	if body, ok := specialErrorBody(err); ok {
		writeErrorBody(w, body)
		return
	}
	var public *vedette.Error
	if errors.As(err, &public) && exceptionByKind[public.Kind].status != 0 {
		f := exceptionByKind[public.Kind]
		writeError(w, f.status, f.exception, public.Message)
		return
	}
	id := rand.Text()[:10]
	a.Log.ErrorContext(r.Context(), "internal error", "id", id, "method", r.Method, "path", r.URL.Path, "error", err)
	writeError(w, http.StatusInternalServerError, "java.lang.IllegalStateException", "internal error; see the server's log for id "+id)
}

// specialErrorBody returns the body of errors that Clouddriver answers in its own way.
func specialErrorBody(err error) (errorBody, bool) {
	var readErr *readError
	var unsupported *unsupportedProviderError
	var unknownProvider *unknownProviderError
	var invalid *task.ValidationError
	var unknown *task.UnknownError
	var tooLarge *http.MaxBytesError
	var largeTask *task.TooLargeError
	var download *artifacts.DownloadError
	var missing *artifacts.MissingError
	var parameter *parameterError
	switch {
	case errors.As(err, &missing):
		return errorBody{Status: http.StatusNotFound, Exception: notFoundException, Message: missing.Error()}, true
	case errors.As(err, &download):
		return errorBody{Status: http.StatusInternalServerError, Message: download.Message,
			Exception: "com.netflix.spinnaker.clouddriver.artifacts.exceptions.FailedDownloadException"}, true
	case errors.As(err, &parameter):
		return errorBody{Status: http.StatusBadRequest, Exception: "org.springframework.web.method.annotation.MethodArgumentTypeMismatchException",
			Message: parameter.message}, true
	case errors.As(err, &readErr) && readErr.unavailable:
		f := exceptionByKind[vedette.Unavailable]
		return errorBody{Status: f.status, Exception: f.exception, Message: readErr.message}, true
	case errors.As(err, &readErr):
		return errorBody{Status: http.StatusInternalServerError, Exception: "com.netflix.spinnaker.kork.exceptions.SpinnakerException",
			Message: readErr.message}, true
	case errors.As(err, &unknownProvider):
		return errorBody{Status: http.StatusBadRequest, Exception: "com.netflix.spinnaker.clouddriver.exceptions.CloudProviderNotFoundException",
			Message: unknownProvider.Error()}, true
	case errors.As(err, &accountManagementError{}):
		return errorBody{Status: http.StatusBadRequest, Exception: "com.netflix.spinnaker.kork.exceptions.ConfigurationException",
			Message: err.Error()}, true
	case errors.As(err, &unsupported):
		return errorBody{Status: http.StatusInternalServerError, Exception: "java.lang.UnsupportedOperationException",
			Message: unsupported.Error()}, true
	case errors.As(err, &invalid):
		return errorBody{Status: http.StatusBadRequest, Exception: "com.netflix.spinnaker.clouddriver.deploy.DescriptionValidationException",
			Message: "Validation Failed", Errors: invalid.Errors}, true
	case errors.As(err, &unknown):
		return errorBody{Status: http.StatusBadRequest,
			Exception: "com.netflix.spinnaker.clouddriver.orchestration.AtomicOperationConverterNotFoundException",
			Message:   unknown.Error()}, true
	case errors.As(err, &tooLarge):
		return errorBody{Status: http.StatusRequestEntityTooLarge, Exception: "java.lang.IllegalArgumentException",
			Message: fmt.Sprintf("the body is larger than the limit of %d MiB", tooLarge.Limit>>20)}, true
	case errors.As(err, &largeTask):
		return errorBody{Status: http.StatusRequestEntityTooLarge, Exception: "java.lang.IllegalArgumentException",
			Message: largeTask.Error()}, true
	case errors.Is(err, middleware.ErrSlowBody):
		return errorBody{Status: http.StatusRequestTimeout, Exception: "java.lang.IllegalArgumentException", Message: err.Error()}, true
	}
	return errorBody{}, false
}

func writeError(w http.ResponseWriter, status int, exception, message string) {
	writeErrorBody(w, errorBody{Status: status, Exception: exception, Message: message})
}

// retryAfter is the value of Retry-After in seconds if the server is unavailable.
const retryAfter = "5"

// writeErrorBody completes and sends an error.
func writeErrorBody(w http.ResponseWriter, b errorBody) {
	b.Timestamp, b.Error = time.Now().UTC().Format("2006-01-02T15:04:05.000+00:00"), http.StatusText(b.Status)
	w.Header().Set("Content-Type", "application/json")
	if b.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(b.Status)
	// An error means that the client is gone.
	_ = json.NewEncoder(w).Encode(b)
}
