// Package logging creates the logger of both programs.
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

// Levels that slog does not have, for the Scale Agent's level names.
const (
	LevelTrace = slog.LevelDebug - 4
	LevelFatal = slog.LevelError + 4
)

// levels maps names to levels. Nothing is logged at fatal and panic, so these levels disable errors
// too.
var levels = map[string]slog.Level{
	"trace": LevelTrace, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "warning": slog.LevelWarn,
	"error": slog.LevelError, "fatal": LevelFatal, "panic": LevelFatal,
}

// ParseLevel parses the name of a level in any case. "" means info.
func ParseLevel(name string) (slog.Level, error) {
	if name == "" {
		return slog.LevelInfo, nil
	}
	level, ok := levels[strings.ToLower(name)]
	if !ok {
		return slog.LevelInfo, fmt.Errorf("the log level must be trace, debug, info, warn, error, fatal or panic, got %q", name)
	}
	return level, nil
}

// New returns a logger that writes lines to w. level is the least severe level to log, "" means
// info. format is text or json in any case, "" means text.
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
	return nil, fmt.Errorf("the log format must be text or json, got %q", format)
}

// replaceLevelName prints TRACE instead of slog's DEBUG-4.
func replaceLevelName(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.LevelKey {
		if level, ok := a.Value.Any().(slog.Level); ok && level == LevelTrace {
			a.Value = slog.StringValue("TRACE")
		}
	}
	return a
}
