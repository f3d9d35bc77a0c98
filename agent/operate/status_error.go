package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

// statusError is an error response of the API server.
type statusError struct {
	Status     int
	Reason     string
	Message    string
	RetryAfter time.Duration
	causes     []kube.StatusCause
}

// Error returns the message of the API server, unchanged.
func (e *statusError) Error() string { return e.Message }

// isFieldManagerConflict reports whether a conflict is one of server-side apply, which a retry does
// not resolve.
func (e *statusError) isFieldManagerConflict() bool {
	for _, cause := range e.causes {
		if cause.Reason == "FieldManagerConflict" {
			return true
		}
	}
	return false
}

func (r *run) readStatusError(ctx context.Context, resp *http.Response) error {
	body, err := r.readBody(ctx, io.LimitReader(resp.Body, maxErrorBodyBytes), decodedAsTypes)
	if isFinal(err) {
		body = []byte("its message needs more memory than the agent has for it") // the status counts all the same
	} // otherwise a part of the body is enough
	e := parseStatusError(body)
	e.Status = resp.StatusCode
	if e.Reason == "" {
		e.Reason = strings.ReplaceAll(http.StatusText(resp.StatusCode), " ", "")
	}
	if e.Message == "" { // for example from a load balancer without API servers
		e.Message = fmt.Sprintf("%d %s, without a message of the API server or of a proxy before it", resp.StatusCode,
			http.StatusText(resp.StatusCode))
	}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n >= 0 {
		e.RetryAfter = time.Duration(n) * time.Second
	}
	return e
}

// parseStatusError reads a metav1.Status. Of any other body it takes the text as the message.
func parseStatusError(body []byte) *statusError {
	s, ok := kube.DecodeStatus(body)
	if !ok {
		return &statusError{Message: strings.TrimSpace(string(body))}
	}
	return &statusError{Reason: s.Reason, Message: s.Message, RetryAfter: time.Duration(s.Details.RetryAfterSeconds) * time.Second,
		causes: s.Details.Causes}
}

// statusCode returns the status of the statusError in err's chain, or 0.
func statusCode(err error) int {
	if r := asStatusError(err); r != nil {
		return r.Status
	}
	return 0
}

func isNotFound(err error) bool { return statusCode(err) == http.StatusNotFound }

// isConflict reports whether another writer was faster. Conflicts of field managers are excluded,
// because to read again does not resolve them.
func isConflict(err error) bool {
	r := asStatusError(err)
	return r != nil && r.Status == http.StatusConflict && r.Reason == string(metav1.StatusReasonConflict) && !r.isFieldManagerConflict()
}

// mayHaveTakenEffect reports whether a request that failed with err may have taken effect. Of such
// an error the sender is a proxy, or an API server that got no response from etcd.
func mayHaveTakenEffect(err error) bool {
	r := asStatusError(err)
	if r == nil {
		return false
	}
	switch r.Status {
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	case http.StatusInternalServerError:
		return r.Reason == "ServerTimeout" || !strings.Contains(r.Message, "failed calling webhook") &&
			slices.ContainsFunc(etcdErrorSubstrings, func(part string) bool { return strings.Contains(r.Message, part) })
	}
	return false
}

// etcdErrorSubstrings are in the messages of errors that an API server gets from etcd, or from the
// connection to it, and returns with status 500. Other errors with that status, and those of
// webhooks, happen before anything is written.
var etcdErrorSubstrings = []string{"etcdserver: ", "rpc error: code = ", "context deadline exceeded", "context canceled",
	"transport is closing"}

// lostError means that a request that may change something was sent, but its response did not
// arrive, or left open whether the request took effect.
type lostError struct {
	err     error
	message string // replaces that of err if it must not be kept
}

// Error says whether the response is missing or inconclusive, and why.
func (e *lostError) Error() string {
	if e.message != "" {
		return e.message
	}
	if mayHaveTakenEffect(e.err) {
		return fmt.Sprintf("the cluster's response leaves open whether the request took effect: %v", e.err)
	}
	return fmt.Sprintf("the request was sent, but the response did not arrive, so it may have taken effect: %v", e.err)
}

// Unwrap returns the cause.
func (e *lostError) Unwrap() error { return e.err }

// kindNotServedError means that the cluster does not serve a kind. Unlike a missing object this is
// not what a caller who waits for a deletion hopes for.
type kindNotServedError struct{ message string }

func kindNotServedf(format string, args ...any) error {
	return &kindNotServedError{fmt.Sprintf(format, args...)}
}

// Error returns the message.
func (e *kindNotServedError) Error() string { return e.message }

// Unwrap returns a vedette.NotFound.
func (e *kindNotServedError) Unwrap() error {
	return &vedette.Error{Kind: vedette.NotFound, Message: e.message}
}

// errorOutcome turns an error into an outcome. An error of the API server takes precedence over a
// deadline that passed after it.
func errorOutcome(err error) vedette.Outcome {
	var lost *lostError
	var r *statusError
	var noKind *kindNotServedError
	var ours *vedette.Error
	switch {
	case errors.As(err, &lost):
		return vedette.Outcome{State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Lost", Message: err.Error()}
	case errors.Is(err, kube.ErrAnotherCluster):
		return vedette.Outcome{State: vedette.Failed, Status: http.StatusConflict, Reason: vedette.ReasonAnotherCluster, Message: err.Error()}
	case errors.As(err, &r):
		return vedette.Outcome{State: vedette.Failed, Status: r.Status, Reason: r.Reason, Message: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return vedette.Outcome{State: vedette.Failed, Status: http.StatusGatewayTimeout, Reason: "Timeout", Message: err.Error()}
	case errors.As(err, &noKind):
		return vedette.Outcome{State: vedette.Failed, Status: http.StatusNotFound, Reason: vedette.ReasonKindNotServed, Message: err.Error()}
	case errors.As(err, &ours):
		status, reason := statusForErrorKind(ours.Kind)
		return vedette.Outcome{State: vedette.Failed, Status: status, Reason: reason, Message: err.Error()}
	}
	return vedette.Outcome{State: vedette.Failed, Status: http.StatusInternalServerError, Reason: "InternalError", Message: err.Error()}
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

// asStatusError returns the statusError in err's chain, or nil.
func asStatusError(err error) *statusError {
	var r *statusError
	if errors.As(err, &r) {
		return r
	}
	return nil
}
