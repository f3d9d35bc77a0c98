package read

import (
	"testing"
	"time"
)

// TestTotalsAreReusedByTheirCost checks how long a sum over many feeds is used again.
func TestTotalsAreReusedByTheirCost(t *testing.T) {
	var totals feedTotals
	now := time.Now()
	totals.put("cheap", feedTotal{1, now, time.Millisecond})
	totals.put("expensive", feedTotal{2, now, time.Second})
	for _, tt := range []struct {
		key   string
		after time.Duration
		want  bool
	}{
		{"cheap", minTotalReuse - 1, true}, {"cheap", minTotalReuse, false}, {"expensive", 49 * time.Second, true},
		{"expensive", 50 * time.Second, false}, {"other", 0, false},
	} {
		if _, ok := totals.get(tt.key, now.Add(tt.after)); ok != tt.want {
			t.Errorf("%s after %s: got %v, want %v", tt.key, tt.after, ok, tt.want)
		}
	}
}

func TestTotalsAreBounded(t *testing.T) {
	var totals feedTotals
	for i := range 10 * maxTotals {
		totals.put(string(rune('a'+i)), feedTotal{read: time.Now()})
	}
	if len(totals.entries) > maxTotals {
		t.Errorf("got %d entries, want at most %d", len(totals.entries), maxTotals)
	}
}
