package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

var lineTime = regexp.MustCompile(`time="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"`)

// TestScaleAgentLines compares lines with those that logrus would write.
func TestScaleAgentLines(t *testing.T) {
	for _, tt := range []struct {
		name string
		log  func(log *slog.Logger)
		want string
	}{
		{"an operation", func(log *slog.Logger) {
			log.With("account", vedette.AccountName("prod")).Info("operation ended", "operation", "01FRK", "verb", vedette.Verb("apply"), "duration", 13900*time.Microsecond)
		}, `level=info msg="operation ended" account=prod duration=13.9ms operationId=01FRK operationType=Deploy`},
		{"a feed of a namespace", func(log *slog.Logger) {
			log.Warn("cannot read a deletion, listing the feed again", "feed", "Deployment.apps/shop", "error", errors.New("no uid"))
		}, `level=warning msg="cannot read a deletion, listing the feed again" error="no uid" group=apps kind=Deployment watchedNamespace=shop`},
		{"a feed of a core kind", func(log *slog.Logger) { log.Error("x", "feed", "Pod", "namespace", "a b") },
			`level=error msg=x kind=Pod operationNamespace="a b"`},
		{"an agent, and a group", func(log *slog.Logger) { log.WithGroup("g").Info("x", "agent", "a-1", slog.Group("h", "y", 1)) },
			`level=info msg=x g.agent=a-1 g.h.y=1`},
		{"an agent", func(log *slog.Logger) { log.Info("agent connected", "agent", "a-1", "verb", "") }, `level=info msg="agent connected" agentId=a-1 operationType=""`},
		{"a field twice", func(log *slog.Logger) { log.With("account", "a").Info("x", "account", "b") }, `level=info msg=x account=b`},
		{"names of lines", func(log *slog.Logger) { log.Info("x", "level", "high", "msg", "y", "time", "now") },
			`level=info msg=x fields.level=high fields.msg=y fields.time=now`},
		{"lines that people forge", func(log *slog.Logger) { log.Info("x", "error", "a\ntime=\"\" level=error\u202e\x1b[2J\xff") },
			`level=info msg=x error="a\ntime=\"\" level=error\u202e\x1b[2J\xff"`},
		{"names that people forge", func(log *slog.Logger) { log.Info("x", "a=b\n", 1) }, `level=info msg=x "a=b\n"=1`},
		{"a secret", func(log *slog.Logger) { log.Info("x", "error", "token hunter2-and-more") }, `level=info msg=x error="token ***"`},
		{"a long value", func(log *slog.Logger) { log.Info("x", "error", strings.Repeat("y", 5000)) },
			`level=info msg=x error="` + strings.Repeat("y", 4096) + `... (5000 bytes)"`},
		{"a debug line", func(log *slog.Logger) { log.Debug("not shown") }, ""},
	} {
		var out bytes.Buffer
		log, err := New(Config{Format: "Scale-Agent"}, &out, &out)
		if err != nil {
			t.Fatal(err)
		}
		SetSecrets(log, []string{"hunter2-and-more"})
		tt.log(log)
		got := strings.TrimSuffix(out.String(), "\n")
		rest, hasTime := strings.CutPrefix(lineTime.ReplaceAllString(got, "T"), "T ")
		if rest != tt.want || hasTime != (tt.want != "") {
			t.Errorf("%s: got\n%s\nwant the time and\n%s", tt.name, got, tt.want)
		}
	}
}

// TestScaleAgentJSON checks that each line is one object with logrus's names, whatever the values are.
func TestScaleAgentJSON(t *testing.T) {
	var out bytes.Buffer
	log, err := New(Config{Format: ScaleAgentJSON, Fields: map[string]string{"agentId": "a-1"}}, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	log.Warn("operation ended", "verb", "history", "count", 3, "ok", true, "error", errors.New("a\u202eb"), "added", []string{"x"}, "ratio", math.NaN(),
		"odd", make(chan int))
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || strings.Count(out.String(), "\n") != 1 || strings.Contains(out.String(), "\u202e") {
		t.Fatalf("got %q, %v", out.String(), err)
	}
	for key, want := range map[string]any{"level": "warning", "msg": "operation ended", "operationType": "RevisionHistory", "count": "3", "agentId": "a-1", "error": "a\u202eb"} {
		if line[key] != want {
			t.Errorf("%s: got %v, want %v", key, line[key], want)
		}
	}
	if _, err := time.Parse(time.RFC3339, line["time"].(string)); err != nil {
		t.Error(err)
	}
	out.Reset()
	log.Info("x", "count", 3, "ok", true, "added", []string{"y"})
	line = nil
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["count"] != 3.0 || line["ok"] != true || len(line["added"].([]any)) != 1 {
		t.Errorf("got %q, %v, want values of their types", out.String(), err)
	}
}

// nilError is an error whose methods cannot be called on a nil pointer.
type nilError struct{ text string }

// Error implements error.
func (e *nilError) Error() string { return e.text }

// TestNilErrorsDoNotStopTheProgram logs an error that is a nil pointer, which slog's own handlers survive, too.
func TestNilErrorsDoNotStopTheProgram(t *testing.T) {
	for _, format := range Formats {
		var out bytes.Buffer
		log, err := New(Config{Format: format}, &out, &out)
		if err != nil {
			t.Fatal(err)
		}
		var nothing *nilError
		log.Info("x", "error", nothing)
		if got := out.String(); !strings.Contains(got, "<nil>") {
			t.Errorf("%s: got %q", format, got)
		}
	}
}
