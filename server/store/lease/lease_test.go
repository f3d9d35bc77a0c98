package lease

import (
	"testing"
	"time"
)

func TestOnlyAbandonedLeasesAreTaken(t *testing.T) {
	const start = 1_000_000_000
	leaseAt := func(renewed, now time.Duration) Row {
		return Row{Server: "s1", Host: "h1", Token: "t1", Renewed: start + renewed.Microseconds(), Now: start + now.Microseconds()}
	}
	first := Observation{Row: leaseAt(0, 0)}
	renewed := leaseAt(time.Second, time.Second)
	other := leaseAt(0, time.Hour)
	other.Token = "t2"
	for _, tt := range []struct {
		name    string
		row     Row
		watched time.Duration
		want    Decision
	}{
		{"free", Row{}, 0, Take},
		{"first read, renewed recently", leaseAt(0, 0), 0, Wait},
		{"first read, old by a clock that may just have been set", leaseAt(0, time.Hour), 0, Wait},
		{"unchanged, and old", leaseAt(0, time.Hour), 2 * time.Second, Take},
		{"unchanged, renewed recently", leaseAt(0, 2*time.Second), 2 * time.Second, Wait},
		{"unchanged for its whole TTL", leaseAt(0, 10*time.Second), 10 * time.Second, Take},
		{"unchanged, by a clock that was set back", leaseAt(0, -time.Hour), 9 * time.Second, Wait},
		{"unchanged for its whole TTL, by a clock that was set back", leaseAt(0, -time.Hour), 10 * time.Second, Take},
		{"renewed", renewed, 2 * time.Second, Refuse},
		{"renewed, and watched for long because this process was frozen", renewed, time.Hour, Refuse},
		{"taken by another process", other, time.Hour, Refuse},
	} {
		if got := first.Decide(tt.row, tt.watched, OtherTTL); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
