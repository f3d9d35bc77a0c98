// Package logging makes the logger that both programs use.
package logging

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// The formats of log lines.
const (
	Text = "text"
	JSON = "json"
)

// Levels beyond those of slog, for the predecessor's words.
const (
	LevelTrace = slog.LevelDebug - 4
	LevelFatal = slog.LevelError + 4
)

// levels are the words for levels. Fatal and panic let fewer lines pass than
// error does; nothing is logged at them that ends the program by itself.
var levels = map[string]slog.Level{
	"trace": LevelTrace, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "warning": slog.LevelWarn,
	"error": slog.LevelError, "fatal": LevelFatal, "panic": LevelFatal,
}

// ParseLevel reads a level's name in any case. Empty means info.
func ParseLevel(name string) (slog.Level, error) {
	if name == "" {
		return slog.LevelInfo, nil
	}
	level, ok := levels[strings.ToLower(name)]
	if !ok {
		return slog.LevelInfo, fmt.Errorf("a log level is one of trace, debug, info, warn, error, fatal and panic, and %q stands there", name)
	}
	return level, nil
}

// New makes a logger that writes lines of a format, text or json in any case, at
// a level or above to w. Level and format may be empty: info and text.
func New(level, format string, w io.Writer) (*slog.Logger, error) {
	minLevel, err := ParseLevel(level)
	if err != nil {
		return nil, err
	}
	options := &slog.HandlerOptions{Level: minLevel, ReplaceAttr: replaceLevelName}
	switch strings.ToLower(format) {
	case Text, "":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case JSON:
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("a log format is one of text and json, and %q stands there", format)
}

// replaceLevelName writes TRACE where slog would write DEBUG-4.
func replaceLevelName(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.LevelKey {
		if level, ok := a.Value.Any().(slog.Level); ok && level == LevelTrace {
			a.Value = slog.StringValue("TRACE")
		}
	}
	return a
}
