package request

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// RetryPolicy determines which failed requests are retried, and how often. By default these are
// throttled requests, timeouts of the API server, and connections that broke, unless something
// could happen twice. Conflicts are not covered: they are resolved by reading and merging again,
// up to 5 times.
//
// Never retried are errors of the caller (4xx except 429), which include that an object does not
// exist, and requests that are not idempotent and may have taken effect.
type RetryPolicy struct {
	Disabled bool // nothing is retried
	// MaxRetries limits the retries of one request. Zero means until the deadline, but 3 for
	// errors that are retried because of AnyError or ErrorSubstrings.
	MaxRetries int
	// Backoff is the delay before a retry; zero for one that doubles (Config.InitialBackoff).
	Backoff time.Duration
	// AnyError adds all other errors of the cluster.
	AnyError bool
	// ErrorSubstrings add errors of the cluster whose message contains one of them, ignoring case.
	ErrorSubstrings []string
}

// defaultConfiguredRetries is the limit for errors that only AnyError or ErrorSubstrings add.
const defaultConfiguredRetries = 3

// shouldRetry reports whether to retry a request whose attempt, counted from 1, failed.
func (r RetryPolicy) shouldRetry(req Request, err error, attempt int) bool {
	switch {
	case r.Disabled:
		return false
	case req.isRetryable(err):
		return r.MaxRetries <= 0 || attempt <= r.MaxRetries
	}
	return r.isConfiguredRetry(req, err) && attempt <= cmp.Or(max(r.MaxRetries, 0), defaultConfiguredRetries)
}

// isConfiguredRetry reports whether AnyError or ErrorSubstrings add an error.
func (r RetryPolicy) isConfiguredRetry(req Request, err error) bool {
	if req.NonIdempotent || isClientError(err) {
		return false
	}
	text := strings.ToLower(err.Error())
	return r.AnyError || slices.ContainsFunc(r.ErrorSubstrings, func(part string) bool {
		return part != "" && strings.Contains(text, strings.ToLower(part))
	})
}

func isClientError(err error) bool {
	if r := AsStatusError(err); r != nil {
		return r.Status < http.StatusInternalServerError && (r.Status != http.StatusNotFound || r.absence == absenceByStatus)
	}
	switch vedette.KindOf(err) {
	case vedette.Invalid, vedette.NotFound, vedette.Denied, vedette.Conflict:
		return true
	}
	return false
}

// maxConflictAttempts limits the attempts to change an object that others change too.
const maxConflictAttempts = 5

// RetryOnConflict calls try, which reads what it changes, until it does not end in a conflict.
func (s *Sender) RetryOnConflict(ctx context.Context, try func() error) error {
	backoff := s.cfg.InitialBackoff
	for attempt := 1; ; attempt++ {
		err := try()
		if !IsConflict(err) || attempt >= maxConflictAttempts || !Sleep(ctx, backoff) {
			return err
		}
		backoff = min(2*backoff, s.cfg.MaxBackoff)
	}
}
