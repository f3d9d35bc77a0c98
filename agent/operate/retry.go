package operate

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// RetryPolicy are which failed requests are made again, and how often. Throttling,
// what an API server could not do in time, and what broke off are, unless that
// could do something twice. Conflicts are apart from all this: what lost a race
// is read again and merged anew, Config.Tries times.
//
// Never made again is what is the caller's fault (4xx but 429), which is also
// how the absence of an object is told, and what is not idempotent and may have
// taken effect.
type RetryPolicy struct {
	Disabled bool // nothing is
	// MaxRetries bounds how often one request is made again; zero for as long as the
	// operation lasts, and for 3 times where only Any or Texts ask for it.
	MaxRetries int
	// Backoff is between two; zero for one that doubles (Config.FirstRetry).
	Backoff time.Duration
	// AnyError adds whatever the cluster could not do.
	AnyError bool
	// ErrorSubstrings add what the cluster could not do and said with one of these in it,
	// in any case.
	ErrorSubstrings []string
}

// defaultConfiguredRetries is how often what only Any and Texts ask for is made again.
const defaultConfiguredRetries = 3

// shouldRetry reports whether to make a request again that was made and failed so
// many times.
func (r RetryPolicy) shouldRetry(req request, err error, attempt int) bool {
	switch {
	case r.Disabled:
		return false
	case req.isRetryable(err):
		return r.MaxRetries <= 0 || attempt <= r.MaxRetries
	}
	return r.isConfiguredRetry(req, err) && attempt <= cmp.Or(max(r.MaxRetries, 0), defaultConfiguredRetries)
}

// isConfiguredRetry reports whether a user asked for another try.
func (r RetryPolicy) isConfiguredRetry(req request, err error) bool {
	if req.nonIdempotent || isClientError(err) {
		return false
	}
	text := strings.ToLower(err.Error())
	return r.AnyError || slices.ContainsFunc(r.ErrorSubstrings, func(part string) bool {
		return part != "" && strings.Contains(text, strings.ToLower(part))
	})
}

func isClientError(err error) bool {
	if r := asStatusError(err); r != nil {
		return r.Status < http.StatusInternalServerError
	}
	switch vedette.KindOf(err) {
	case vedette.Invalid, vedette.NotFound, vedette.Denied, vedette.Conflict:
		return true
	}
	return false
}
