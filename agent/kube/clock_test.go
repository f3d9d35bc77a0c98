package kube

import (
	"net/http"
	"testing"
	"time"
)

// TestKeptUntil checks how long credentials are used that expire at some time by this machine's
// clock, which may be hours off.
func TestKeptUntil(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct{ expires, want time.Time }{
		"unknown":                     {time.Time{}, time.Time{}},
		"in an hour":                  {now.Add(time.Hour), now.Add(time.Hour)},
		"in a moment":                 {now.Add(time.Second), now.Add(execMinInterval)},
		"now":                         {now, now.Add(execSkewedInterval)},
		"two hours ago, by our clock": {now.Add(-2 * time.Hour), now.Add(execSkewedInterval)},
	} {
		if got := keptUntil(tt.expires, now); !got.Equal(tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

// TestClockSkew checks how far the clock is found to be off by the date of a response.
func TestClockSkew(t *testing.T) {
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
