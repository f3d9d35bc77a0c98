package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/artifacts"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/task"
)

// Error is an error that Clouddriver answers in its own way. Other errors of the type vedette.Error are answered by their
// kind.
type Error struct {
	Status    int
	Exception string // class of the exception in Clouddriver
	Message   string
	Errors    []string // validation errors; Orca shows them before the message
}

func (e *Error) Error() string { return e.Message }

// Exceptions of several errors.
const (
	NotFoundException    = "com.netflix.spinnaker.kork.web.exceptions.NotFoundException"
	IntegrationException = "com.netflix.spinnaker.kork.exceptions.IntegrationException"
	argumentException    = "java.lang.IllegalArgumentException"
)

// errorOfKind has the status and the exception of each kind of vedette.Error that clients may see.
var errorOfKind = map[vedette.ErrorKind]Error{
	vedette.Invalid:     {Status: http.StatusBadRequest, Exception: argumentException},
	vedette.NotFound:    {Status: http.StatusNotFound, Exception: NotFoundException},
	vedette.Conflict:    {Status: http.StatusConflict, Exception: "com.netflix.spinnaker.kork.web.exceptions.InvalidRequestException"},
	vedette.Denied:      {Status: http.StatusForbidden, Exception: "org.springframework.security.access.AccessDeniedException"},
	vedette.Unavailable: {Status: http.StatusServiceUnavailable, Exception: IntegrationException},
}

// Fail returns a function that answers requests with errors in Clouddriver's form. Errors that clients must not see are logged.
func Fail(log *slog.Logger) middleware.RejectFunc {
	return func(w http.ResponseWriter, r *http.Request, err error) {
		if rest.HasEnded(r, err) {
			writeError(w, &Error{Status: http.StatusServiceUnavailable, Exception: IntegrationException, Message: rest.StoppedMessage})
			return
		}
		e, ok := publicError(err)
		if !ok {
			e = &Error{Status: http.StatusInternalServerError, Exception: "java.lang.IllegalStateException",
				Message: "internal error; see the server's log for id " + rest.LogInternal(log, r, err)}
		}
		writeError(w, e)
	}
}

// publicError returns what clients may see of an error. It returns false if that is nothing.
func publicError(err error) (*Error, bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e, true
	}
	if e := packageError(err); e != nil {
		return e, true
	}
	if public, ok := errors.AsType[*vedette.Error](err); ok {
		e, isPublic := errorOfKind[public.Kind]
		e.Message = public.Message
		return &e, isPublic
	}
	return nil, false
}

// packageError converts the errors of other packages, or returns nil.
func packageError(err error) *Error {
	var (
		missing   *artifacts.MissingError
		download  *artifacts.DownloadError
		invalid   *task.ValidationError
		unknown   *task.UnknownError
		largeTask *task.TooLargeError
		tooLarge  *http.MaxBytesError
	)
	switch {
	case errors.As(err, &missing):
		return &Error{Status: http.StatusNotFound, Exception: NotFoundException, Message: missing.Error()}
	case errors.As(err, &download):
		return &Error{Status: http.StatusInternalServerError, Message: download.Message,
			Exception: "com.netflix.spinnaker.clouddriver.artifacts.exceptions.FailedDownloadException"}
	case errors.As(err, &invalid):
		return &Error{Status: http.StatusBadRequest, Exception: "com.netflix.spinnaker.clouddriver.deploy.DescriptionValidationException",
			Message: "Validation Failed", Errors: invalid.Errors}
	case errors.As(err, &unknown):
		return &Error{Status: http.StatusBadRequest, Message: unknown.Error(),
			Exception: "com.netflix.spinnaker.clouddriver.orchestration.AtomicOperationConverterNotFoundException"}
	case errors.As(err, &tooLarge):
		return &Error{Status: http.StatusRequestEntityTooLarge, Exception: argumentException,
			Message: fmt.Sprintf("the body is larger than the limit of %d MiB", tooLarge.Limit>>20)}
	case errors.As(err, &largeTask):
		return &Error{Status: http.StatusRequestEntityTooLarge, Exception: argumentException, Message: largeTask.Error()}
	case errors.Is(err, middleware.ErrSlowBody):
		return &Error{Status: http.StatusRequestTimeout, Exception: argumentException, Message: err.Error()}
	}
	return nil
}

// AccountNotFound replaces the error of an unknown account by Clouddriver's.
func AccountNotFound(err error, name vedette.AccountName) error {
	if vedette.KindOf(err) == vedette.NotFound {
		return vedette.Errorf(vedette.NotFound, "Account does not exist (name: %s)", name)
	}
	return err
}

// errorBody has no path, because Clouddriver's has none.
type errorBody struct {
	Timestamp string   `json:"timestamp"`
	Status    int      `json:"status"`
	Error     string   `json:"error"`
	Exception string   `json:"exception"`
	Message   string   `json:"message"`
	Errors    []string `json:"errors,omitempty"`
}

func writeError(w http.ResponseWriter, e *Error) {
	w.Header().Set("Content-Type", "application/json")
	if e.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", rest.RetryAfter)
	}
	w.WriteHeader(e.Status)
	// An error means that the client is gone.
	_ = json.NewEncoder(w).Encode(errorBody{time.Now().UTC().Format("2006-01-02T15:04:05.000+00:00"), e.Status, http.StatusText(e.Status),
		e.Exception, e.Message, e.Errors})
}
