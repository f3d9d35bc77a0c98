package filewatch

import (
	"os"
	"time"
)

// stabilityCheck decides whether changed files are complete, or may still be being written.
//
// A file that replaced another one, by a rename or in a ConfigMap, is complete. A file that is written in place
// is valid YAML at almost any moment, even while its end is missing. It is considered complete when it has not
// changed for some time.
type stabilityCheck struct {
	still   time.Duration // how long a file must look the same
	maxWait time.Duration // how long to wait for files that go on changing
	since   time.Time     // when the first of the changes was seen that wait; zero if none does
	seen    map[string]sighting
}

// sighting is how a changed file looked, and since when.
type sighting struct {
	state    fileState
	since    time.Time
	complete bool // at once
}

// look returns how long to wait until the changed files may be complete; 0 if they are, or if they go
// on changing for too long.
func (w *stabilityCheck) look(now time.Time, last, current fileStates, changed []string) (wait time.Duration, goesOn bool) {
	seen := map[string]sighting{}
	for _, path := range changed {
		seen[path] = w.sight(now, path, last, current[path])
		if s := seen[path]; !s.complete {
			wait = max(wait, w.still-now.Sub(s.since))
		}
	}
	w.seen = seen
	if w.since.IsZero() {
		w.since = now
	}
	left := w.maxWait - now.Sub(w.since)
	if wait > 0 && left > 0 {
		return min(wait, left), false
	}
	w.since, w.seen = time.Time{}, nil
	return 0, wait > 0
}

// sight returns how long a changed file has been looking as it does now.
func (w *stabilityCheck) sight(now time.Time, path string, last fileStates, state fileState) sighting {
	if before, isKnown := w.seen[path]; isKnown {
		if before.state.equals(state) {
			return before
		}
		return sighting{state, now, state.replaces(before.state)}
	}
	if before, isKnown := last[path]; isKnown {
		return sighting{state, now, state.replaces(before)}
	}
	return sighting{state, now, state.info == nil || now.Sub(state.info.ModTime()) >= w.still}
}

// equals reports whether a file was probably not written in between.
func (s fileState) equals(other fileState) bool {
	if s.info == nil || other.info == nil {
		return s.info == nil && other.info == nil
	}
	return s.sum == other.sum && s.info.Size() == other.info.Size() && s.info.ModTime().Equal(other.info.ModTime())
}

// replaces reports whether a file was put in the place of another one as a whole.
func (s fileState) replaces(before fileState) bool {
	switch {
	case s.info == nil || s.info.Size() == 0: // programs also remove or truncate a file before they write it
		return false
	case before.target != "" && s.target != before.target:
		return true
	default:
		return (before.info == nil || !os.SameFile(s.info, before.info)) && wasMoved(s.info)
	}
}
