package filewatch

import "time"

// debounce decides when to look at files after notifications: once none has come for quiet, but at
// the latest after longest, so that a program that writes without end cannot prevent a report.
type debounce struct {
	quiet, longest time.Duration
	first          time.Time // the first notification that was not looked at; zero if there is none
}

// notified returns how long to wait after a notification.
func (d *debounce) notified(now time.Time) time.Duration {
	if d.first.IsZero() {
		d.first = now
	}
	return max(0, min(d.quiet, d.longest-now.Sub(d.first)))
}

// looked says that all files were looked at.
func (d *debounce) looked() { d.first = time.Time{} }
