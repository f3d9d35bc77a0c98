package upstream

import (
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette/internal/logthrottle"
)

// stats counts the requests to the upstream Clouddriver. It is safe for concurrent use.
type stats struct {
	log      *slog.Logger
	warnings logthrottle.Limiter

	mu       sync.Mutex
	requests int64
	failures int64
	total    time.Duration // until the answers began
	answers  int64         // that began
	lasts    int64         // answers with a last complete part
	lastFail string        // why the last request failed; empty if it did not
	reasons  map[string]int64
}

// Stats counts the requests to the upstream Clouddriver since the server started.
type Stats struct {
	Requests int64
	Answers  int64         // that began
	Time     time.Duration // until they began, all together
	Failures map[string]int64
	// LastAnswers is how many answers had the last complete part of the upstream Clouddriver instead of the current one.
	LastAnswers int64
	// Ages is how old the last complete answers are, by their names.
	Ages map[string]time.Duration
}

// Stats returns what was counted. Failures are by reason, of which there are few.
func (r *Remote) Stats() Stats {
	s := r.client.stats
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Requests: s.requests, Answers: s.answers, Time: s.total, Failures: maps.Clone(s.reasons),
		LastAnswers: s.lasts, Ages: r.answers.ages(),
	}
}

// countLast counts an answer with a last complete part.
func (s *stats) countLast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lasts++
}

// healthDetails is what /health says of the requests.
type healthDetails struct {
	Requests  int64  `json:"requests"`
	Failures  int64  `json:"failures"`
	AverageMs int64  `json:"averageMs"`
	LastError string `json:"lastError,omitempty"`
}

// isFailing reports whether the last request failed.
func (s *stats) isFailing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastFail != ""
}

// succeed counts a request that was answered.
func (s *stats) succeed(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.answers++
	s.total += took
	s.lastFail = ""
}

// fail counts a request that was not answered, or with an error of the upstream Clouddriver.
func (s *stats) fail(reason string, err error) {
	s.mu.Lock()
	s.requests++
	s.mu.Unlock()
	s.reject(reason, err)
}

// reject counts an answer that began but cannot be used.
func (s *stats) reject(reason string, err error) {
	s.mu.Lock()
	s.failures++
	if reason != reasonBusy { // that is this server's state
		s.lastFail = reason
	}
	if s.reasons == nil {
		s.reasons = map[string]int64{}
	}
	s.reasons[boundedReason(reason)]++
	s.mu.Unlock()
	if count, ok := s.warnings.Allow(); ok {
		s.log.Warn("the upstream Clouddriver does not answer as it should: agents' accounts are not affected",
			"reason", reason, "error", err, "failures", count)
	}
}

// boundedReason returns a reason, or "status-other" for statuses that the upstream Clouddriver or a
// proxy has made up.
func boundedReason(reason string) string {
	code, isStatus := strings.CutPrefix(reason, "status-")
	if n, err := strconv.Atoi(code); isStatus && (err != nil || http.StatusText(n) == "") {
		return "status-other"
	}
	return reason
}

func (s *stats) health() healthDetails {
	s.mu.Lock()
	defer s.mu.Unlock()
	details := healthDetails{Requests: s.requests, Failures: s.failures, LastError: s.lastFail}
	if s.answers > 0 {
		details.AverageMs = (s.total / time.Duration(s.answers)).Milliseconds()
	}
	return details
}

// status returns the state in the words of Spring Boot's health.
func (s healthDetails) status() string {
	switch {
	case s.Requests == 0:
		return "UNKNOWN"
	case s.LastError != "":
		return "DOWN"
	}
	return "UP"
}
