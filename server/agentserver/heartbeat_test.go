package agentserver

import (
	"testing"
	"time"
)

// TestPauseOfTheServerCountsForNobody checks that the time for which this process runs begins anew
// after a pause, and that it does not for a delay.
func TestPauseOfTheServerCountsForNobody(t *testing.T) {
	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	type call struct{ at, want float64 }
	for name, calls := range map[string][]call{
		"no pause":              {{3, 3}, {6, 6}, {9, 9}},
		"delays":                {{3.9, 3.9}, {6, 6}, {9.8, 9.8}},
		"frozen for 8 s":        {{3, 3}, {11, 0}, {12, 1}, {15, 4}, {18, 7}, {20, 9}},
		"frozen from the start": {{60, 0}, {63, 3}},
		"frozen twice":          {{3, 3}, {13, 0}, {16, 3}, {26, 0}},
	} {
		pauses := pauseDetector{interval: 3 * time.Second, awakeSince: start, lastSeen: start}
		for _, c := range calls {
			if got := pauses.awakeFor(at(c.at)); got != at(c.want).Sub(start) {
				t.Errorf("%s: at %v s: got %v, want %v s", name, c.at, got, c.want)
			}
		}
	}
}
