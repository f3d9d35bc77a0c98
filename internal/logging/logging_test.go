package logging

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLevelAndFormatTakeEffect(t *testing.T) {
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
		log, err := New(Config{Level: tt.level, Format: tt.format}, &out, nil)
		if err != nil {
			t.Errorf("%s %s: %v", tt.level, tt.format, err)
			continue
		}
		logAtEachLevel(t, log)
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
	for _, invalid := range []Config{{Level: "loud"}, {Format: "xml"}} {
		if _, err := New(invalid, &strings.Builder{}, nil); err == nil {
			t.Errorf("%v passed", invalid)
		}
	}
}

func logAtEachLevel(t *testing.T, log *slog.Logger) {
	t.Helper()
	log.Log(t.Context(), LevelTrace, "m")
	log.Info("m")
	log.Warn("m", slog.Group("g", "level", "kept"))
	log.Error("m")
}

// TestLevelChangesForDerivedLoggers changes the level of a logger through one that comes from it.
func TestLevelChangesForDerivedLoggers(t *testing.T) {
	var out strings.Builder
	log, err := New(Config{}, &out, nil)
	if err != nil {
		t.Fatal(err)
	}
	child := log.With("account", "a").WithGroup("g")
	log.Debug("hidden")
	if err := SetLevel(child, "debug"); err != nil {
		t.Error(err)
	}
	log.Debug("shown")
	if err := SetLevel(log, "ERROR"); err != nil {
		t.Error(err)
	}
	child.Warn("hidden")
	if err := SetLevel(log, "loud"); err == nil {
		t.Error("an unknown level passed")
	}
	if err := SetLevel(slog.New(slog.DiscardHandler), "info"); err == nil {
		t.Error("the level of another handler was changed")
	}
	if got := out.String(); strings.Contains(got, "hidden") || strings.Count(got, "msg=shown") != 1 {
		t.Errorf("got %s", got)
	}
}

// TestLinesContainFieldsAndAttributesOfContext checks what is added to each line.
func TestLinesContainFieldsAndAttributesOfContext(t *testing.T) {
	var out strings.Builder
	log, err := New(Config{Format: JSON, Fields: map[string]string{"zone": "eu", "agentCluster": ""}}, &out, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := WithAttrs(t.Context(), slog.String("request", "r1"))
	sibling := WithAttrs(ctx, slog.String("operation", "other"))
	log.With("account", "a").InfoContext(WithAttrs(ctx, slog.String("operation", "o1")), "m", "status", 200)
	var got map[string]any
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"zone": "eu", "agentCluster": "", "account": "a", "request": "r1", "operation": "o1", "status": 200.0} {
		if got[key] != want {
			t.Errorf("%s: got %v, want %v in %s", key, got[key], want, out.String())
		}
	}
	if at, err := time.Parse(time.RFC3339Nano, got["time"].(string)); err != nil || at.Location() != time.UTC {
		t.Errorf("got time %v, want UTC", got["time"])
	}
	if attrs := attrsOf(sibling); len(attrs) != 2 || attrs[1].Value.String() != "other" {
		t.Errorf("contexts share attributes: got %v", attrs)
	}
}
