package logging

import (
	"log/slog"
	"strings"
	"testing"
)

func TestNew(t *testing.T) {
	for _, tt := range []struct {
		level, format string
		want          []string // the last word of each of the four lines at trace, info, warn and error that is logged
	}{
		{"", "", []string{"level=INFO", "level=WARN", "level=ERROR"}},
		{"Trace", "TEXT", []string{"level=TRACE", "level=INFO", "level=WARN", "level=ERROR"}},
		{"WARNING", "json", []string{`"level":"WARN"`, `"level":"ERROR"`}},
		{"error", "text", []string{"level=ERROR"}},
		{"panic", "text", nil},
	} {
		var out strings.Builder
		log, err := New(tt.level, tt.format, &out)
		if err != nil {
			t.Errorf("%s %s: %v", tt.level, tt.format, err)
			continue
		}
		log.Log(t.Context(), LevelTrace, "m")
		log.Info("m")
		log.Warn("m", slog.Group("g", "level", "kept"))
		log.Error("m")
		lines := strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' })
		if len(lines) != len(tt.want) {
			t.Errorf("%s %s: got %q", tt.level, tt.format, lines)
			continue
		}
		for i, substring := range tt.want {
			if !strings.Contains(lines[i], substring) {
				t.Errorf("%s %s: line %q does not contain %s", tt.level, tt.format, lines[i], substring)
			}
		}
	}
	for _, invalid := range [][2]string{{"loud", "text"}, {"info", "xml"}} {
		if _, err := New(invalid[0], invalid[1], &strings.Builder{}); err == nil {
			t.Errorf("%v passed", invalid)
		}
	}
}
