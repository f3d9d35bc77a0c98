package watch

import (
	"testing"
	"time"
)

// TestRequestedDiscoveryIsFollowedUp plays a discovery at each time when it is due, and checks when those are.
func TestRequestedDiscoveryIsFollowedUp(t *testing.T) {
	const interval = 2 * time.Minute
	start := time.Unix(0, 0)
	type result struct {
		at       float64 // seconds; the discovery begins then
		took     float64
		changed  bool
		rechecks int
		failed   bool
		requests []float64 // while it is awaited
		want     float64   // when the next one is due; 0 for the interval
	}
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	for _, tt := range []struct {
		name    string
		results []result
	}{
		{"nothing happens", []result{{at: 0, changed: true}, {at: 120}}},
		{"a request is followed up", []result{{at: 0, changed: true, requests: []float64{10}, want: 11}, {at: 11, want: 13}, {at: 13, want: 18}, {at: 18, want: 33}, {at: 33, want: 78}, {at: 78}}},
		{"a change does not end the follow-ups, because it may be half of what changes",
			[]result{{at: 0, requests: []float64{10}, want: 11}, {at: 11, changed: true, want: 13}, {at: 13, changed: true, want: 15}, {at: 15, want: 20}}},
		{"requests together cost one discovery", []result{{at: 0, requests: []float64{10, 10.2, 10.9}, want: 11}, {at: 11, want: 13}}},
		{"a request cuts a long pause", []result{{at: 0, requests: []float64{10}, want: 11}, {at: 11, want: 13}, {at: 13, want: 18}, {at: 18, requests: []float64{20}, want: 21}, {at: 21, want: 23}}},
		{"requests without end", []result{{at: 0, requests: []float64{0.5}, want: 2}, {at: 2, requests: []float64{2.5}, want: 4}, {at: 4, requests: []float64{4.5}, want: 6}}},
		{"requests without end, and discovery is slow", []result{{at: 0, took: 1, requests: []float64{1.1}, want: 10}, {at: 10, took: 3, requests: []float64{13.1}, want: 15}}},
		{"what is missing is rechecked at its own pace, whatever is requested", []result{{at: 0}, {at: 10, rechecks: 1, requests: []float64{10.1}, want: 12}, {at: 12, rechecks: 2, requests: []float64{12.1}, want: 17}}},
		{"what is gone may come back", []result{{at: 0}, {at: 10, rechecks: 3, want: 55}, {at: 55}}},
		{"a failure after a success is followed up", []result{{at: 0}, {at: 10, failed: true}, {at: 20, want: 22}, {at: 22, want: 27}}},
		{"a failure at first is not", []result{{at: 0, failed: true}, {at: 1, changed: true}}},
	} {
		s := &discoverySchedule{settle: time.Second, interval: interval}
		for i, r := range tt.results {
			s.begin(at(r.at))
			if r.failed {
				s.failed()
				continue
			}
			s.succeeded(at(r.at+r.took), r.changed, r.rechecks)
			for _, request := range r.requests {
				s.request(at(request))
			}
			if r.want == 0 {
				if pause := s.due.Sub(at(r.at + r.took)); pause < interval*9/10 || pause > interval*11/10 {
					t.Errorf("%s: after discovery %d: due after %v, want the interval", tt.name, i, pause)
				}
			} else if got := s.due.Sub(start).Seconds(); got != r.want {
				t.Errorf("%s: after discovery %d: due at %vs, want %vs", tt.name, i, got, r.want)
			}
		}
	}
}
