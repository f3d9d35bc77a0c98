package logthrottle

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSourcesAreThrottledSeparately floods the log from one source, and then from very many.
func TestSourcesAreThrottledSeparately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		sources := NewSources(slog.New(slog.NewTextHandler(&out, nil)))
		for range 100 {
			sources.Logger("hostile").Info("connected", "from", "hostile")
		}
		sources.Logger("honest").Info("connected", "from", "honest")
		if got := strings.Count(out.String(), "hostile"); got != linesPerWindow || !strings.Contains(out.String(), "honest") {
			t.Errorf("got %d lines of one source, want %d, and that of the other: %.300s", got, linesPerWindow, out.String())
		}
		out.Reset()
		for i := range 10 * maxSources {
			sources.Logger(fmt.Sprint(i)).Info("connected")
		}
		if got := strings.Count(out.String(), "\n"); got > maxSources+linesPerWindow || len(sources.bySource) > maxSources+1 {
			t.Errorf("got %d lines of %d sources, want at most %d", got, len(sources.bySource), maxSources+linesPerWindow)
		}
		time.Sleep(window)
		out.Reset()
		sources.Logger("late").Info("connected")
		if out.Len() == 0 || len(sources.bySource) != 1 {
			t.Errorf("got %q and %d sources, want a line, and that silent sources are forgotten", out.String(), len(sources.bySource))
		}
	})
}
