package kube

import (
	"net/http"
	"testing"
	"time"
)

// TestClockSkewIsReadFromResponses checks how far the clock is found to be off by the date of a response.
func TestClockSkewIsReadFromResponses(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	date := func(ahead time.Duration) string { return now.Add(-ahead).Format(http.TimeFormat) }
	for name, tt := range map[string]struct {
		date string
		want time.Duration
		text string
	}{
		"no date":               {"", 0, ""},
		"not a date":            {"yesterday", 0, ""},
		"the same":              {date(0), 0, ""},
		"a minute":              {date(time.Minute), 0, ""},
		"two hours ahead":       {date(2 * time.Hour), 2 * time.Hour, "2h0m0s ahead of"},
		"a day behind":          {date(-24 * time.Hour), -24 * time.Hour, "24h0m0s behind"},
		"seconds do not matter": {date(2*time.Hour + 3*time.Second), 2*time.Hour + 3*time.Second, "2h0m0s ahead of"},
	} {
		got := clockSkew(tt.date, now)
		if got != tt.want || got != 0 && describeSkew(got) != tt.text {
			t.Errorf("%s: got %v (%s), want %v (%s)", name, got, describeSkew(got), tt.want, tt.text)
		}
	}
}
