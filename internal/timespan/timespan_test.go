package timespan

import (
	"strings"
	"testing"
	"time"
)

func TestTimesInThePastAreParsed(t *testing.T) {
	now := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"":                          "0001-01-01T00:00:00Z",
		"30m":                       "2026-03-08T11:30:00Z",
		"2h30m":                     "2026-03-08T09:30:00Z",
		"7d":                        "2026-03-01T12:00:00Z",
		"1w1d12h":                   "2026-02-28T00:00:00Z",
		"0s":                        "2026-03-08T12:00:00Z",
		"2026-03-01T15:04:05Z":      "2026-03-01T15:04:05Z",
		"2026-03-01T15:04:05+02:00": "2026-03-01T13:04:05Z",
		"2026-03-08T12:00:30Z":      "2026-03-08T12:00:30Z", // another machine's clock
	} {
		got, err := ParsePast("since", text, now)
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q: got %v, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"-5m":                  "it is in the future, and now it is 2026-03-08T12:00:00Z",
		"2026-03-08T13:00:00Z": "it is in the future, and now it is 2026-03-08T12:00:00Z",
		"2062-03-08T13:00:00Z": "it is in the future",
		"yesterday":            "must be how long ago, for example 30m, 2h or 7d, or a time",
		"2026-03-01":           "must be how long ago",
		"d":                    "must be how long ago",
		"-1d":                  "must be how long ago",
		"99999d":               "must be how long ago",
		"65535w":               "must be how long ago", // more than a time.Duration has
		"20000w":               "must be how long ago",
		"5000w30000d2000000h":  "must be how long ago",
		"5":                    "must be how long ago",
		"1h1d":                 "must be how long ago",
		"\xff":                 "must be how long ago",
	} {
		if got, err := ParsePast("since", text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want an error with %q", text, got, err, want)
		}
	}
}
