package watch

import "time"

// followUpPauses, in units of Config.SettleDelay, are the pauses between discoveries after a
// change of custom kinds. More than one is needed because API servers update their
// discovery in the background, and each of several API servers does so in its own time.
var followUpPauses = [...]time.Duration{2, 5, 15, 45}

// discoverySchedule decides when discovery runs. It is a pure core: callers pass the time.
//
//	discovery ──a request, or a change──> follow-ups ──their end──> once per interval
//
// A request is answered only by a discovery that begins after it: what was requested may
// have happened while another discovery was under way.
type discoverySchedule struct {
	settle   time.Duration // see Config.SettleDelay
	interval time.Duration // see Config.RediscoverInterval

	hasRun    bool
	began     time.Time
	ended     time.Time
	due       time.Time
	followUps int // that remain
	// rechecking is set while feeds are missing that may come back. Requests then do not
	// make discovery due earlier, because a feed counts as gone after some discoveries that
	// must not follow each other too fast.
	rechecking bool
}

func (s *discoverySchedule) begin(now time.Time) { s.began = now }

// failed notes that a discovery failed. An API server that responds again has perhaps only
// just started, and not collected its custom kinds yet.
func (s *discoverySchedule) failed() {
	if s.hasRun {
		s.followUps = len(followUpPauses)
	}
}

// succeeded notes the end of a discovery: whether feeds have changed, and how often feeds
// that existed before are missing from it by now (see Watcher.suspectMissing).
func (s *discoverySchedule) succeeded(now time.Time, changed bool, rechecks int) {
	if changed && s.hasRun {
		s.followUps = len(followUpPauses) // what changes may not have changed completely
	}
	if rechecks > maxRechecks {
		s.followUps = max(s.followUps, 1) // what is gone may still come back
	}
	s.hasRun = true
	s.ended = now
	s.rechecking = rechecks > 0 && rechecks <= maxRechecks
	switch {
	case s.rechecking:
		s.due = now.Add(s.settle * followUpPauses[rechecks-1])
	case s.followUps > 0:
		s.due = now.Add(s.settle * followUpPauses[len(followUpPauses)-s.followUps])
		s.followUps--
	default:
		s.due = now.Add(randomDuration(s.interval*9/10, s.interval*11/10))
	}
}

// request asks for a discovery after Config.SettleDelay, because custom kinds are often
// created together. Discoveries that are requested all the time, by a controller that
// always changes its definitions, take at most a tenth of the time: API servers before
// 1.26 need about a hundred requests for one.
func (s *discoverySchedule) request(now time.Time) {
	s.followUps = len(followUpPauses)
	pause := max(2*s.settle, 9*s.ended.Sub(s.began))
	due := now.Add(s.settle)
	if earliest := s.ended.Add(pause); due.Before(earliest) {
		due = earliest
	}
	if due.Before(s.due) && !s.rechecking {
		s.due = due
	}
}
