package logthrottle

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLinesOfAMessageAreThrottled floods one message. Others, and lines of level debug, are written.
func TestLinesOfAMessageAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		log := Logger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
		for i := range 1000 {
			log.With("caller", i).Info("access denied")
		}
		log.WithGroup("g").Warn("another line")
		for range 100 {
			log.Debug("debug line")
		}
		count := func(text string) int { return strings.Count(out.String(), text) }
		if count("access denied") != linesPerWindow || count("another line") != 1 || count("debug line") != 100 {
			t.Errorf("got %d, %d and %d lines, want %d, 1 and 100", count("access denied"), count("another line"), count("debug line"), linesPerWindow)
		}
		time.Sleep(window)
		log.Info("access denied")
		if !strings.Contains(out.String(), "suppressed=980") {
			t.Errorf("the next line does not tell how many were left out: %.500s", out.String())
		}
		out.Reset()
		for i := range 10 * maxMessages {
			log.Info(fmt.Sprint("message ", i)) //nolint:sloglint // lines are throttled by message
		}
		if n := count("\n"); n > maxMessages+linesPerWindow {
			t.Errorf("got %d lines of different messages, want at most %d", n, maxMessages+linesPerWindow)
		}
	})
}
