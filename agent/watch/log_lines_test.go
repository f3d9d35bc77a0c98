package watch_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// logLines is a log handler that keeps the lines, in the form "WARN message key=value".
type logLines struct {
	mu      sync.Mutex
	lines   []string
	changed chan struct{} // closed and replaced at each line
}

func newLogLines() *logLines { return &logLines{changed: make(chan struct{})} }

func (l *logLines) Enabled(context.Context, slog.Level) bool { return true }
func (l *logLines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logLines) WithGroup(string) slog.Handler            { return l }

func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.Key + "=" + a.Value.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// matching returns the lines that begin with a text.
func (l *logLines) matching(prefix string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.HasPrefix(line, prefix) {
			found = append(found, line)
		}
	}
	return found
}

func (l *logLines) await(t *testing.T, prefix string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if len(l.matching(prefix)) > 0 {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("timed out waiting for %q; got %q", prefix, l.matching(""))
		}
	}
}
