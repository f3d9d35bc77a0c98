package logthrottle

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Limits of a throttled logger.
const (
	linesPerWindow = 20 // of one message
	window         = 10 * time.Second
	maxMessages    = 1000 // that are counted separately; messages are constants, so there are fewer
)

// Logger returns a logger for lines that clients can cause. It writes at most 20 lines of each message in ten
// seconds. The next line of that message says how many were left out, as "suppressed". Lines below level
// info are not throttled: an operator has asked for all of them.
func Logger(log *slog.Logger) *slog.Logger {
	return slog.New(handler{log.Handler(), &counters{byMessage: map[string]*counter{}}})
}

// handler throttles the lines of a logger and of all that come from it together.
type handler struct {
	slog.Handler
	counters *counters
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo {
		suppressed, ok := h.counters.allow(r.Message, time.Now())
		if !ok {
			return nil
		}
		if suppressed > 0 {
			r = r.Clone() // the caller's record may share its memory with other handlers
			r.AddAttrs(slog.Int("suppressed", suppressed))
		}
	}
	return h.Handler.Handle(ctx, r) //nolint:wrapcheck // errors of a handler belong to whoever logs
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.counters}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.counters}
}

type counters struct {
	mu        sync.Mutex
	byMessage map[string]*counter
}

// counter counts the lines of one message.
type counter struct {
	windowEnd  time.Time
	lines      int // in the window
	suppressed int // since the last line that was written
}

func (c *counters) allow(message string, now time.Time) (suppressed int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.counterLocked(message)
	if !now.Before(m.windowEnd) {
		m.windowEnd, m.lines = now.Add(window), 0
	}
	if m.lines >= linesPerWindow {
		m.suppressed++
		return 0, false
	}
	m.lines++
	suppressed, m.suppressed = m.suppressed, 0
	return suppressed, true
}

// counterLocked returns the counter of a message. Further messages share one.
func (c *counters) counterLocked(message string) *counter {
	if m := c.byMessage[message]; m != nil {
		return m
	}
	if len(c.byMessage) >= maxMessages {
		message = ""
	}
	if c.byMessage[message] == nil {
		c.byMessage[message] = &counter{}
	}
	return c.byMessage[message]
}
