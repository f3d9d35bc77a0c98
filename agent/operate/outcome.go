package operate

import (
	"context"
	"errors"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// errorOutcome turns an error into an outcome.
func errorOutcome(err error) vedette.Outcome {
	out := vedette.Outcome{State: vedette.Failed, Message: err.Error()}
	if request.IsLost(err) {
		out.State = vedette.Lost
	}
	out.Status, out.Reason = statusForError(err)
	return out
}

// statusForError returns the status of an outcome and its reason. An error of the API server takes precedence over a
// deadline that passed after it.
func statusForError(err error) (int, string) {
	statusErr := request.AsStatusError(err)
	switch {
	case request.IsLost(err):
		return http.StatusGatewayTimeout, "Lost"
	case errors.Is(err, kube.ErrAnotherCluster):
		return http.StatusConflict, vedette.ReasonAnotherCluster
	case request.StatusCode(err) == http.StatusNotFound && !request.IsNotFound(err): // callers take 404 for missing
		return http.StatusBadGateway, "BadGateway"
	case statusErr != nil:
		return statusErr.Status, statusErr.Reason
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, "Timeout"
	case request.IsKindNotServed(err):
		return http.StatusNotFound, vedette.ReasonKindNotServed
	}
	return statusForErrorKind(vedette.KindOf(err))
}

func statusForErrorKind(k vedette.ErrorKind) (int, string) {
	switch k {
	case vedette.Invalid:
		return http.StatusBadRequest, "BadRequest"
	case vedette.NotFound:
		return http.StatusNotFound, "NotFound"
	case vedette.Conflict:
		return http.StatusConflict, "Conflict"
	case vedette.Denied:
		return http.StatusForbidden, "Forbidden"
	case vedette.Unavailable:
		return http.StatusServiceUnavailable, "ServiceUnavailable"
	}
	return http.StatusInternalServerError, "InternalError"
}
