package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// statusError is an API server's no, in its own words.
type statusError struct {
	Status     int
	Reason     string
	Message    string
	RetryAfter time.Duration
	causes     []statusCause
}

// Error returns the message as it came.
func (r *statusError) Error() string { return r.Message }

// isFieldManagerConflict reports whether a conflict is one of server-side apply, which trying
// again does not cure.
func (r *statusError) isFieldManagerConflict() bool {
	for _, cause := range r.causes {
		if cause.Reason == "FieldManagerConflict" {
			return true
		}
	}
	return false
}

// maxErrorBodyBytes bounds the text of an API server's no. Admission webhooks can be
// talkative, but what is beyond this is no message.
const maxErrorBodyBytes = 4 << 20

func readStatusError(resp *http.Response) *statusError {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBodyBytes)) // what came says enough
	r := parseStatusError(body)
	r.Status = resp.StatusCode
	if r.Reason == "" {
		r.Reason = strings.ReplaceAll(http.StatusText(resp.StatusCode), " ", "")
	}
	if r.Message == "" { // as from a load balancer whose API servers are all gone
		r.Message = fmt.Sprintf("%d %s, without a word from the API server or what stands before it", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n >= 0 {
		r.RetryAfter = time.Duration(n) * time.Second
	}
	return r
}

// parseStatusError reads a metav1.Status, or takes the text where it is none.
func parseStatusError(body []byte) *statusError {
	var s struct {
		Kind, Reason, Message string
		Details               struct {
			RetryAfterSeconds int
			Causes            []statusCause
		}
	}
	if err := json.Unmarshal(body, &s); err != nil || s.Kind != "Status" {
		return &statusError{Message: strings.TrimSpace(string(body))}
	}
	return &statusError{Reason: s.Reason, Message: s.Message, RetryAfter: time.Duration(s.Details.RetryAfterSeconds) * time.Second, causes: s.Details.Causes}
}

// statusCode returns the status of the refusal in err's chain, or 0.
func statusCode(err error) int {
	if r := asStatusError(err); r != nil {
		return r.Status
	}
	return 0
}

func isNotFound(err error) bool { return statusCode(err) == http.StatusNotFound }

// mayHaveTakenEffect reports whether a no to a request that changes something leaves open
// whether it took effect: whoever gave it had asked somebody else, and was not
// answered.
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

// etcdErrorSubstrings are in the texts of errors that an API server has from etcd, or from the
// way to it, and passes on with status 500. What else has that status tells of what
// it does before, and so do webhooks that don't answer.
var etcdErrorSubstrings = []string{"etcdserver: ", "rpc error: code = ", "context deadline exceeded", "context canceled", "transport is closing"}

// lostError says that a request that changes something was sent and that its
// answer did not come, or did not say whether it was done.
type lostError struct {
	err     error
	message string // what is told in place of err, where its words must not be kept
}

// Error tells what was known.
func (e *lostError) Error() string {
	if e.message != "" {
		return e.message
	}
	if mayHaveTakenEffect(e.err) {
		return fmt.Sprintf("the cluster did not say whether the request took effect: %v", e.err)
	}
	return fmt.Sprintf("the request was sent and its answer did not come, so that it may have taken effect: %v", e.err)
}

// Unwrap returns what broke it off.
func (e *lostError) Unwrap() error { return e.err }

// errorOutcome turns an error into an outcome. The cluster's own words win over what
// happened after them.
func errorOutcome(err error) vedette.Outcome {
	var lost *lostError
	var r *statusError
	var ours *vedette.Error
	switch {
	case errors.As(err, &lost):
		return vedette.Outcome{State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Lost", Message: err.Error()}
	case errors.As(err, &r):
		return vedette.Outcome{State: vedette.Failed, Status: r.Status, Reason: r.Reason, Message: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return vedette.Outcome{State: vedette.Failed, Status: http.StatusGatewayTimeout, Reason: "Timeout", Message: err.Error()}
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

// asStatusError returns the refusal in err's chain, or nil.
func asStatusError(err error) *statusError {
	var r *statusError
	if errors.As(err, &r) {
		return r
	}
	return nil
}
