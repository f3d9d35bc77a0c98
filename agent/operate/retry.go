package operate

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// Retries are which failed requests are made again, and how often. Throttling,
// what an API server could not do in time, and what broke off are, unless that
// could do something twice. Conflicts are apart from all this: what lost a race
// is read again and merged anew, Config.Tries times.
//
// Never made again is what is the caller's fault (4xx but 429), which is also
// how the absence of an object is told, and what is not idempotent and may have
// taken effect.
type Retries struct {
	Off bool // nothing is
	// Most bounds how often one request is made again; zero for as long as the
	// operation lasts, and for 3 times where only Any or Texts ask for it.
	Most int
	// Pause is between two; zero for one that doubles (Config.FirstRetry).
	Pause time.Duration
	// Any adds whatever the cluster could not do.
	Any bool
	// Texts add what the cluster could not do and said with one of these in it,
	// in any case.
	Texts []string
}

// mostMore is how often what only Any and Texts ask for is made again.
const mostMore = 3

// again reports whether to make a request again that was made and failed so
// many times.
func (r Retries) again(c call, err error, made int) bool {
	switch {
	case r.Off:
		return false
	case c.again(err):
		return r.Most <= 0 || made <= r.Most
	}
	return r.more(c, err) && made <= cmp.Or(max(r.Most, 0), mostMore)
}

// more reports whether a user asked for another try.
func (r Retries) more(c call, err error) bool {
	if c.once || callersFault(err) {
		return false
	}
	text := strings.ToLower(err.Error())
	return r.Any || slices.ContainsFunc(r.Texts, func(part string) bool {
		return part != "" && strings.Contains(text, strings.ToLower(part))
	})
}

func callersFault(err error) bool {
	if r := refusalOf(err); r != nil {
		return r.Status < http.StatusInternalServerError
	}
	switch vedette.KindOf(err) {
	case vedette.Invalid, vedette.NotFound, vedette.Denied, vedette.Conflict:
		return true
	}
	return false
}
