// Package metricstest reads metrics in tests of what sets them. Only tests import it.
package metricstest

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// served are metrics that are served over HTTP, as metricset.Set is.
type served interface {
	Handler(log *slog.Logger) http.Handler
}

// Scrape returns the answer to a scrape.
func Scrape(t testing.TB, metrics served) string {
	t.Helper()
	response := httptest.NewRecorder()
	metrics.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if response.Code != http.StatusOK {
		t.Fatalf("got %d %s", response.Code, response.Body)
	}
	return response.Body.String()
}

// WantLines checks that a scrape has lines, and that it lacks the texts that follow "no ".
func WantLines(t testing.TB, metrics served, lines ...string) {
	t.Helper()
	scraped := Scrape(t, metrics)
	for _, line := range lines {
		if absent, isAbsent := strings.CutPrefix(line, "no "); isAbsent && strings.Contains(scraped, absent) {
			t.Errorf("got %q, want it to be absent in\n%s", absent, scraped)
		} else if !isAbsent && !strings.Contains(scraped, "\n"+line+"\n") {
			t.Errorf("got no line %q in\n%s", line, scraped)
		}
	}
}
