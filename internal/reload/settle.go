package reload

import "time"

// settling decides when to look at files after notifications: once none has come for quiet, but at
// the latest after longest, so that a program that writes without end cannot prevent a reload.
type settling struct {
	quiet, longest time.Duration
	first          time.Time // the first notification that was not looked at; zero if there is none
}

// notified returns how long to wait after a notification.
func (s *settling) notified(now time.Time) time.Duration {
	if s.first.IsZero() {
		s.first = now
	}
	return max(0, min(s.quiet, s.longest-now.Sub(s.first)))
}

// looked says that all files were looked at.
func (s *settling) looked() { s.first = time.Time{} }
