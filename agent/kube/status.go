package kube

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette/internal/exactjson"
)

// StatusError is an error that an API server returned, either as the status of a
// response or as an ERROR event of a watch.
type StatusError struct {
	Code       int
	Reason     string
	Message    string
	RetryAfter time.Duration
	TooLarge   bool // the requested resourceVersion is newer than the API server's
	// ClockSkew is how far this machine's clock is ahead of the API server's, if the API server
	// rejected the credentials and the clocks differ so much that this may be the reason.
	ClockSkew time.Duration
	// IsStatus reports whether the response was a Status, so that an API server has answered. Others may have sent anything else.
	IsStatus      bool
	isUnknownPath bool // IsUnknownPath of the response
}

// Error returns the code, the reason and the message of the API server.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the API server returned %d %s: %s", e.Code, cmp.Or(e.Reason, http.StatusText(e.Code)), e.Message)
}

// IsExpired reports whether the API server no longer knows the requested
// resourceVersion or continue token.
func (e *StatusError) IsExpired() bool {
	return e.Code == http.StatusGone || e.Reason == "Expired" || e.Reason == "Gone" || e.TooLarge
}

// IsNotFound reports whether an API server says that something does not exist, or answers as API servers do for paths that they do not
// know. Proxies may do the latter, too.
func (e *StatusError) IsNotFound() bool {
	return e.Code == http.StatusNotFound && (e.IsStatus || e.isUnknownPath)
}

// IsUnknownPath reports whether the body of a response with status 404 is what API servers send for a path that they do not know. It is
// not a Status, and other programs in Go send the same.
func IsUnknownPath(body []byte) bool { return string(bytes.TrimSpace(body)) == "404 page not found" }

// StatusCode returns the code of the StatusError in err's chain, or 0.
func StatusCode(err error) int {
	if s, ok := errors.AsType[*StatusError](err); ok {
		return s.Code
	}
	return 0
}

// Status is the part of a metav1.Status that this agent reads.
type Status struct {
	Kind    string `json:"kind"`
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Details struct {
		RetryAfterSeconds int           `json:"retryAfterSeconds"`
		Causes            []StatusCause `json:"causes"`
	} `json:"details"`
}

// StatusCause is one cause of a Status.
type StatusCause struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Field   string `json:"field"`
}

// DecodeStatus reads a metav1.Status. It reports false if body is anything else.
func DecodeStatus(body []byte) (Status, bool) {
	var s Status
	err := exactjson.Unmarshal(body, &s, exactjson.Limits{})
	return s, err == nil && s.Kind == "Status"
}

const (
	maxStatusBytes = 64 << 10
	// maxMessageBytes bounds the message of an API server, because copies of it are kept.
	maxMessageBytes = 2 << 10
	// maxRetryAfterSeconds bounds Retry-After, because the clock of the API server or of a
	// proxy may be wrong.
	maxRetryAfterSeconds = 5 * 60 // seconds
)

// readStatus reads a response whose status is neither 200 nor 304.
func readStatus(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxStatusBytes)) // a part of the body is enough
	e := ParseStatus(body)
	e.Code = resp.StatusCode
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n >= 0 {
		e.RetryAfter = retryAfterOf(n)
	}
	if e.Code == http.StatusUnauthorized {
		e.ClockSkew = clockSkew(resp.Header.Get("Date"), time.Now())
	}
	return e
}

// maxClockSkew is how far clocks may differ. API servers accept tokens until a minute before
// and after they are valid.
const maxClockSkew = time.Minute

// clockSkew returns how far now is ahead of the date of a response, if it is too far.
func clockSkew(date string, now time.Time) time.Duration {
	theirs, err := http.ParseTime(date)
	if err != nil {
		return 0
	}
	skew := now.Sub(theirs).Round(time.Second)
	if skew.Abs() <= maxClockSkew {
		return 0
	}
	return skew
}

// ParseStatus returns a metav1.Status as an error. Of any other body it quotes the
// beginning.
func ParseStatus(body []byte) *StatusError {
	s, ok := DecodeStatus(body)
	if !ok {
		return &StatusError{Message: quoteBody(body), isUnknownPath: IsUnknownPath(body)}
	}
	e := &StatusError{IsStatus: true, Code: s.Code, Reason: truncate(s.Reason, 100), Message: truncate(s.Message, maxMessageBytes),
		RetryAfter: retryAfterOf(s.Details.RetryAfterSeconds)}
	e.TooLarge = strings.HasPrefix(s.Message, "Too large resource version")
	for _, cause := range s.Details.Causes {
		e.TooLarge = e.TooLarge || cause.Reason == "ResourceVersionTooLarge"
	}
	return e
}

func retryAfterOf(n int) time.Duration {
	return time.Duration(max(0, min(n, maxRetryAfterSeconds))) * time.Second
}

// truncate cuts text to a number of bytes.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// quoteBody returns a short line that describes a body that is not a Status.
func quoteBody(body []byte) string {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return "(empty)"
	}
	if body[0] == '<' {
		return "an HTML page, as proxies and sign-in pages send it"
	}
	return fmt.Sprintf("%.120q", body)
}
