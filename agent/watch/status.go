package watch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// statusError is an API server's no, from the status of an answer or from an
// ERROR event of a watch.
type statusError struct {
	Code       int
	Reason     string
	Message    string
	RetryAfter time.Duration
	TooLarge   bool // the resourceVersion asked for lies in the API server's future
}

// Error returns the API server's words.
func (e *statusError) Error() string {
	return fmt.Sprintf("the API server answered %d %s: %s", e.Code, cmp.Or(e.Reason, http.StatusText(e.Code)), e.Message)
}

// isExpired reports whether the mark or the continue token is too old to go on from.
func (e *statusError) isExpired() bool {
	return e.Code == http.StatusGone || e.Reason == "Expired" || e.Reason == "Gone" || e.TooLarge
}

// apiStatus is the part of metav1.Status that is read.
type apiStatus struct {
	Kind    string
	Code    int
	Reason  string
	Message string
	Details struct {
		RetryAfterSeconds int
		Causes            []struct{ Reason, Message string }
	}
}

const (
	maxStatusBytes = 64 << 10
	// maxMessageBytes bounds an API server's words, of which copies are kept.
	maxMessageBytes = 2 << 10
	// maxRetryAfterSeconds bounds for how long an API server is obeyed that wants to be
	// left alone: its clock, or that of a proxy, may be wrong.
	maxRetryAfterSeconds = 5 * 60 // seconds
)

// readStatus reads an answer that is neither 200 nor 304.
func readStatus(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxStatusBytes)) // what came says enough
	e := parseStatus(body)
	e.Code = resp.StatusCode
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n >= 0 {
		e.RetryAfter = retryAfterOf(n)
	}
	return e
}

// parseStatus reads a Status; what is none is quoted in part.
func parseStatus(body []byte) *statusError {
	var s apiStatus
	if err := json.Unmarshal(body, &s); err != nil || s.Kind != "Status" {
		return &statusError{Message: quoteBody(body)}
	}
	e := &statusError{Code: s.Code, Reason: truncate(s.Reason, 100), Message: truncate(s.Message, maxMessageBytes),
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

// truncate cuts a text to a number of bytes.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// quoteBody makes a short line of a body that is no Status.
func quoteBody(body []byte) string {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return "(nothing)"
	}
	if body[0] == '<' {
		return "a page of HTML, as proxies and sign-in pages send it"
	}
	return fmt.Sprintf("%.120q", body)
}
