package assigner

import (
	"log/slog"
	"sync"

	"github.com/vedette-io/vedette/server/assignment"
)

// maxLines bounds the lines that wait until they can be written.
const maxLines = 1000

// lines are lines of the log that wait until they are written. Whoever handles an event executes its effects, and those of others, so a log
// whose reader stands still must not hold up the effects that follow.
type lines struct {
	log   *slog.Logger
	calls *storeCalls // whose goroutines write

	mu        sync.Mutex
	waiting   []assignment.Log
	dropped   int // since lines were written last
	isWriting bool
}

// add adds a line. It does not wait.
func (l *lines) add(line assignment.Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxLines {
		l.dropped++
		return
	}
	l.waiting = append(l.waiting, line)
	if !l.isWriting {
		l.isWriting = true
		l.calls.start(l.write)
	}
}

// write writes lines until none waits.
func (l *lines) write() {
	for {
		waiting, dropped := l.take()
		if len(waiting) == 0 && dropped == 0 {
			return
		}
		for _, line := range waiting {
			l.log.Log(l.calls.ctx, logLevels[line.Level], line.Message, line.Args...) //nolint:sloglint // the fleet's messages are literals
		}
		if dropped > 0 {
			l.log.WarnContext(l.calls.ctx, "lines about assignments are missing, because the log could not be written", "lines", dropped)
		}
	}
}

// take takes all lines. If there are none, the writer ends.
func (l *lines) take() (waiting []assignment.Log, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting, dropped = l.waiting, l.dropped
	l.waiting, l.dropped = nil, 0
	l.isWriting = len(waiting) > 0 || dropped > 0
	return waiting, dropped
}

var logLevels = map[assignment.LogLevel]slog.Level{assignment.Debug: slog.LevelDebug, assignment.Info: slog.LevelInfo,
	assignment.Warn: slog.LevelWarn}
