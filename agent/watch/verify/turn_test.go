package verify

import (
	"testing"
	"time"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestDisturbedFeedsAreStillVerifiedHourly simulates a day of a feed that a proxy disturbs every so often.
func TestDisturbedFeedsAreStillVerifiedHourly(t *testing.T) {
	for name, tt := range map[string]struct {
		disturbEvery time.Duration // 0 for never
		min, max     int           // verifications
	}{
		"undisturbed":                            {0, 21, 28},
		"a proxy that ends watches every minute": {time.Minute, 22, 60},
		"an API server that restarts at noon":    {12 * time.Hour, 22, 30},
	} {
		t.Run(name, func(t *testing.T) {
			turn := NewTurn(start, time.Hour, false)
			n, last := 0, time.Time{}
			for now := start; now.Before(start.Add(24 * time.Hour)); now = now.Add(time.Second) {
				if tt.disturbEvery > 0 && now.Sub(start)%tt.disturbEvery == 0 {
					turn.Disturb(now)
				}
				if now.Before(turn.Due) {
					continue
				}
				if !last.IsZero() && now.Sub(last) < minGap {
					t.Fatalf("verified again after %v", now.Sub(last))
				}
				n, last = n+1, now
				turn.Begin(now)
				turn.End(now, true)
			}
			if n < tt.min || n > tt.max {
				t.Errorf("got %d verifications in a day, want %d to %d", n, tt.min, tt.max)
			}
		})
	}
}

func TestResumedFeedsAreVerifiedSoon(t *testing.T) {
	for range 100 {
		if due := NewTurn(start, time.Hour, true).Due.Sub(start); due > maxFirstDelay {
			t.Fatalf("got the first verification of a feed that resumes after %v, want at most %v", due, maxFirstDelay)
		}
		if due := NewTurn(start, time.Second, true).Due.Sub(start); due > time.Second {
			t.Fatalf("got the first verification after %v, want at most the interval of 1s", due)
		}
	}
}

func TestDisturbanceIsSoon(t *testing.T) {
	turn := NewTurn(start, time.Hour, false)
	now := start.Add(time.Second)
	turn.Disturb(now)
	if soon := turn.Due.Sub(now); soon > disturbedDelay {
		t.Errorf("got the first verification %v after a disturbance, want at most %v", soon, disturbedDelay)
	}
	turn.Begin(turn.Due)
	ended := turn.Due.Add(-time.Hour + time.Minute)
	turn.Disturb(ended)
	turn.End(ended, true)
	if soon := turn.Due.Sub(ended); soon > disturbedDelay+2*minGap {
		t.Errorf("got the next verification %v after a disturbance during the last one, want at most %v", soon, disturbedDelay+2*minGap)
	}
}

func TestFailedVerificationIsRepeated(t *testing.T) {
	turn := NewTurn(start, time.Hour, false)
	turn.Begin(start)
	turn.End(start.Add(time.Second), false)
	if wait := turn.Due.Sub(start); wait > 2*minGap {
		t.Errorf("got the repetition after %v, want at most %v", wait, 2*minGap)
	}
	turn.Repeat(start.Add(2 * time.Second))
	if wait := turn.Due.Sub(start); wait != 2*time.Second {
		t.Errorf("got the verification of a feed that was read anew after %v, want at once", wait)
	}
}
