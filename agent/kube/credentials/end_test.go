package credentials

import (
	"testing"
	"time"
)

// TestCredentialsThatEndSoon checks when an end counts as near.
func TestCredentialsThatEndSoon(t *testing.T) {
	end := time.Unix(1_000_000_000, 0)
	for _, tt := range []struct {
		name     string
		lifetime time.Duration // 0 if it is unknown
		before   time.Duration // the end
		want     bool
	}{
		{"an hour, renewed in time", time.Hour, 7 * time.Minute, false},
		{"an hour, not renewed", time.Hour, 5 * time.Minute, true},
		{"a year, 8 days left", 365 * 24 * time.Hour, 8 * 24 * time.Hour, false},
		{"a year, 6 days left", 365 * 24 * time.Hour, 6 * 24 * time.Hour, true},
		{"ended", 365 * 24 * time.Hour, -time.Second, true},
		{"unknown lifetime, 8 days left", 0, 8 * 24 * time.Hour, false},
		{"unknown lifetime, 6 days left", 0, 6 * 24 * time.Hour, true},
	} {
		e := End{What: "the token", End: end}
		if tt.lifetime > 0 {
			e.Begin = end.Add(-tt.lifetime)
		}
		if got := e.IsNear(end.Add(-tt.before)); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
