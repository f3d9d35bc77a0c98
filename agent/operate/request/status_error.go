package request

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

// StatusError is an error response of the API server.
type StatusError struct {
	Status     int
	Reason     string
	Message    string
	RetryAfter time.Duration
	causes     []kube.StatusCause
	absence    absence
}

// absence is what an error response with status 404 says of what was requested. docs/decisions/0159 says why most such responses say
// nothing.
type absence int

const (
	absenceUnproven absence = iota // nothing: it has none of the forms that API servers give it
	absenceOfPath                  // that the path is unknown: API servers answer so for kinds that they do not serve, and so do many proxies
	absenceByStatus                // that it does not exist, or that the kind has no such subresource: the response is a Status
)

// Error returns the message of the API server, unchanged.
func (e *StatusError) Error() string { return e.Message }

// isFieldManagerConflict reports whether a conflict is one of server-side apply, which a retry does
// not resolve.
func (e *StatusError) isFieldManagerConflict() bool {
	for _, cause := range e.causes {
		if cause.Reason == "FieldManagerConflict" {
			return true
		}
	}
	return false
}

func (s *Sender) readStatusError(ctx context.Context, resp *http.Response) error {
	body, err := s.readErrorBody(ctx, io.LimitReader(resp.Body, maxErrorBodyBytes))
	isMissing := resp.StatusCode == http.StatusNotFound
	if isFinal(err) {
		if isMissing {
			return err // the body would say what is missing
		}
		body = []byte("its message needs more memory than the agent has for it") // the status counts all the same
	}
	e := parseStatusError(body)
	e.Status = resp.StatusCode
	switch {
	case isMissing && err != nil:
		e.absence, e.Reason = absenceUnproven, ""
		e.Message = fmt.Sprintf("%s answered 404, but the answer ended early, so it is unknown what does not exist: %v", s.Host(), err)
	case isMissing && e.absence != absenceByStatus:
		e.Reason, e.Message = "", s.describeUnproven(body, e.absence)
	}
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

// readErrorBody reads the body of an error response. A short one needs no memory of the operation, because an operation without memory must
// still understand that something does not exist. If the body ends early, it returns nothing of it.
func (s *Sender) readErrorBody(ctx context.Context, src io.Reader) ([]byte, error) {
	body, err := s.readBody(ctx, src, NotDecoded)
	if err == nil && len(body) > shortBodyBytes {
		err = s.UseMemory(ctx, DecodedSize(body, DecodedAsTypes))
	}
	return body, err
}

// parseStatusError reads a metav1.Status. Of any other body it takes the text as the message.
func parseStatusError(body []byte) *StatusError {
	s, ok := kube.DecodeStatus(body)
	if ok {
		return &StatusError{Reason: s.Reason, Message: s.Message, RetryAfter: time.Duration(s.Details.RetryAfterSeconds) * time.Second,
			causes: s.Details.Causes, absence: absenceByStatus}
	}
	e := &StatusError{Message: strings.TrimSpace(string(body))}
	if e.Message == "" || kube.IsUnknownPath(body) {
		e.absence = absenceOfPath
	}
	return e
}

// describeUnproven says who may have answered 404 without a Status.
func (s *Sender) describeUnproven(body []byte, a absence) string {
	who := "a proxy or a gateway has answered"
	if a == absenceOfPath {
		who += ", or the kind is being removed"
	}
	return fmt.Sprintf("%s answered 404 with %s and without a Status, which API servers send if an object does not exist: "+
		"%s, so it is unknown whether the object exists: check the address of the API server and what is before it",
		s.Host(), kube.ParseStatus(body).Message, who)
}

// StatusCode returns the status of the StatusError in err's chain, or 0.
func StatusCode(err error) int {
	if r := AsStatusError(err); r != nil {
		return r.Status
	}
	return 0
}

// IsNotFound reports whether the API server says that something does not exist.
func IsNotFound(err error) bool {
	r := AsStatusError(err)
	return r != nil && r.Status == http.StatusNotFound && r.absence == absenceByStatus
}

// IsPathNotFound reports whether a path does not exist. It is for documents that are not objects, such as those of OpenAPI: API servers
// answer for these without a Status, too.
func IsPathNotFound(err error) bool {
	r := AsStatusError(err)
	return r != nil && r.Status == http.StatusNotFound && r.absence != absenceUnproven
}

// IsKindNotFound reports whether an error is the 404 of an unknown path: then the kind may be gone, and not the object.
func IsKindNotFound(err error) bool {
	r := AsStatusError(err)
	return r != nil && r.Status == http.StatusNotFound &&
		(r.absence == absenceOfPath || strings.HasPrefix(r.Message, "the server could not find the requested resource"))
}

// IsConflict reports whether another writer was faster. Conflicts of field managers are excluded,
// because to read again does not resolve them.
func IsConflict(err error) bool {
	r := AsStatusError(err)
	return r != nil && r.Status == http.StatusConflict && r.Reason == string(metav1.StatusReasonConflict) && !r.isFieldManagerConflict()
}

// mayHaveTakenEffect reports whether a request that failed with err may have taken effect. Of such
// an error the sender is a proxy, or an API server that got no response from etcd.
func mayHaveTakenEffect(err error) bool {
	r := AsStatusError(err)
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

// LostError means that a request that may change something was sent, but its response did not
// arrive, or left open whether the request took effect.
type LostError struct {
	Err     error
	Message string // replaces that of err if it must not be kept
}

// Error says whether the response is missing or inconclusive, and why.
func (e *LostError) Error() string {
	if e.Message != "" {
		return e.Message
	}
	if mayHaveTakenEffect(e.Err) {
		return fmt.Sprintf("the cluster's response leaves open whether the request took effect: %v", e.Err)
	}
	return fmt.Sprintf("the request was sent, but the response did not arrive, so it may have taken effect: %v", e.Err)
}

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// IsLost reports whether nobody knows if a request took effect.
func IsLost(err error) bool {
	_, ok := errors.AsType[*LostError](err)
	return ok
}

// kindNotServedError means that the cluster does not serve a kind. Unlike a missing object this is
// not what a caller who waits for a deletion hopes for. It wraps a vedette.NotFound.
type kindNotServedError struct{ error }

func kindNotServedf(format string, args ...any) error {
	return kindNotServedError{vedette.Errorf(vedette.NotFound, format, args...)}
}

// Unwrap returns the error with the message.
func (e kindNotServedError) Unwrap() error { return e.error }

// IsKindNotServed reports whether the cluster does not serve a kind.
func IsKindNotServed(err error) bool {
	_, ok := errors.AsType[kindNotServedError](err)
	return ok
}

// AsStatusError returns the StatusError in err's chain, or nil.
func AsStatusError(err error) *StatusError {
	r, _ := errors.AsType[*StatusError](err)
	return r
}

// ChangedMeanwhile returns the conflict of a patch that was checked against another version of its object.
func ChangedMeanwhile(p Path) error {
	return &StatusError{Status: http.StatusConflict, Reason: string(metav1.StatusReasonConflict),
		Message: fmt.Sprintf("%s was changed by others while the patch was checked: try again", p.Key())}
}
