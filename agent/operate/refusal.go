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

// refusal is an API server's no, in its own words.
type refusal struct {
	Status     int
	Reason     string
	Message    string
	RetryAfter time.Duration
	causes     []cause
}

// Error returns the message as it came.
func (r *refusal) Error() string { return r.Message }

// fields reports whether a conflict is one of server-side apply, which trying
// again does not cure.
func (r *refusal) fields() bool {
	for _, cause := range r.causes {
		if cause.Reason == "FieldManagerConflict" {
			return true
		}
	}
	return false
}

// mostRefusal bounds the text of an API server's no. Admission webhooks can be
// talkative, but what is beyond this is no message.
const mostRefusal = 4 << 20

func readRefusal(resp *http.Response) *refusal {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, mostRefusal)) // what came says enough
	r := parseRefusal(body)
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

// parseRefusal reads a metav1.Status, or takes the text where it is none.
func parseRefusal(body []byte) *refusal {
	var s struct {
		Kind, Reason, Message string
		Details               struct {
			RetryAfterSeconds int
			Causes            []cause
		}
	}
	if err := json.Unmarshal(body, &s); err != nil || s.Kind != "Status" {
		return &refusal{Message: strings.TrimSpace(string(body))}
	}
	return &refusal{Reason: s.Reason, Message: s.Message, RetryAfter: time.Duration(s.Details.RetryAfterSeconds) * time.Second, causes: s.Details.Causes}
}

// statusOf returns the status of the refusal in err's chain, or 0.
func statusOf(err error) int {
	if r := refusalOf(err); r != nil {
		return r.Status
	}
	return 0
}

func missing(err error) bool { return statusOf(err) == http.StatusNotFound }

// undecided reports whether a no to a request that changes something leaves open
// whether it took effect: whoever gave it had asked somebody else, and was not
// answered.
func undecided(err error) bool {
	r := refusalOf(err)
	if r == nil {
		return false
	}
	switch r.Status {
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	case http.StatusInternalServerError:
		return r.Reason == "ServerTimeout" || !strings.Contains(r.Message, "failed calling webhook") &&
			slices.ContainsFunc(ofEtcd, func(part string) bool { return strings.Contains(r.Message, part) })
	}
	return false
}

// ofEtcd are in the texts of errors that an API server has from etcd, or from the
// way to it, and passes on with status 500. What else has that status tells of what
// it does before, and so do webhooks that don't answer.
var ofEtcd = []string{"etcdserver: ", "rpc error: code = ", "context deadline exceeded", "context canceled", "transport is closing"}

// lostError says that a request that changes something was sent and that its
// answer did not come, or did not say whether it was done.
type lostError struct {
	err  error
	told string // what is told in place of err, where its words must not be kept
}

// Error tells what was known.
func (e *lostError) Error() string {
	if e.told != "" {
		return e.told
	}
	if undecided(e.err) {
		return fmt.Sprintf("the cluster did not say whether the request took effect: %v", e.err)
	}
	return fmt.Sprintf("the request was sent and its answer did not come, so that it may have taken effect: %v", e.err)
}

// Unwrap returns what broke it off.
func (e *lostError) Unwrap() error { return e.err }

// endOf turns an error into an outcome. The cluster's own words win over what
// happened after them.
func endOf(err error) vedette.Outcome {
	var lost *lostError
	var r *refusal
	var ours *vedette.Error
	switch {
	case errors.As(err, &lost):
		return vedette.Outcome{State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Lost", Message: err.Error()}
	case errors.As(err, &r):
		return vedette.Outcome{State: vedette.Failed, Status: r.Status, Reason: r.Reason, Message: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return vedette.Outcome{State: vedette.Failed, Status: http.StatusGatewayTimeout, Reason: "Timeout", Message: err.Error()}
	case errors.As(err, &ours):
		status, reason := statusOfKind(ours.Kind)
		return vedette.Outcome{State: vedette.Failed, Status: status, Reason: reason, Message: err.Error()}
	}
	return vedette.Outcome{State: vedette.Failed, Status: http.StatusInternalServerError, Reason: "InternalError", Message: err.Error()}
}

func statusOfKind(k vedette.ErrorKind) (int, string) {
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

// refusalOf returns the refusal in err's chain, or nil.
func refusalOf(err error) *refusal {
	var r *refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}
