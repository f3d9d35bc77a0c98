// Package logging creates the logger of both programs. Lines go to standard output, standard
// error or a file that is rotated, and contain the ids that a context carries.
package logging

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
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

// Config configures a log. The zero value logs lines of text from level info on to standard
// output.
type Config struct {
	Level  string            // the least severe level to log, in any case; "" means info
	Format string            // text or json in any case; "" means text
	File   File              // where lines go
	UTC    bool              // times are in UTC instead of local time
	Fields map[string]string // added to each line
}

// New returns a logger. Each line contains the attributes of its context (WithAttrs). The level can
// be changed later (SetLevel).
func New(cfg Config, stdout, stderr io.Writer) (*slog.Logger, error) {
	level, err := ParseLevel(cfg.Level)
	if err != nil {
		return nil, err
	}
	h := contextHandler{level: &slog.LevelVar{}}
	h.level.Set(level)
	h.secrets = &secretWriter{next: cfg.File.writer(stdout, stderr)}
	options := &slog.HandlerOptions{Level: h.level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if cfg.UTC {
			a = withUTC(groups, a)
		}
		return h.secrets.shorten(groups, replaceLevelName(groups, a))
	}}
	switch strings.ToLower(cfg.Format) {
	case Text, "":
		h.Handler = slog.NewTextHandler(h.secrets, options)
	case JSON:
		h.Handler = slog.NewJSONHandler(visibleJSON{h.secrets}, options)
	default:
		return nil, fmt.Errorf("the log format must be text or json, got %q", cfg.Format)
	}
	log := slog.New(h)
	for _, key := range slices.Sorted(maps.Keys(cfg.Fields)) {
		log = log.With(key, cfg.Fields[key])
	}
	return log, nil
}

// SetLevel changes the level of a logger that New returned, and of all loggers that come from it.
func SetLevel(log *slog.Logger, name string) error {
	level, err := ParseLevel(name)
	if err != nil {
		return err
	}
	h, ok := log.Handler().(contextHandler)
	if !ok {
		return fmt.Errorf("the level of this log cannot be changed while the program runs: restart it to log from level %s on", name)
	}
	h.level.Set(level)
	return nil
}

// contextHandler adds the attributes of the context to each line.
type contextHandler struct {
	slog.Handler
	level   *slog.LevelVar // of Handler
	secrets *secretWriter  // to which Handler writes
}

// Handle implements slog.Handler.
func (h contextHandler) Handle(ctx context.Context, r slog.Record) error {
	if attrs := attrsOf(ctx); len(attrs) > 0 {
		r = r.Clone() // the caller's record may share its memory with other handlers
		r.AddAttrs(attrs...)
	}
	return h.Handler.Handle(ctx, r) //nolint:wrapcheck // errors of a handler belong to whoever logs
}

// WithAttrs implements slog.Handler.
func (h contextHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return contextHandler{h.Handler.WithAttrs(attrs), h.level, h.secrets}
}

// WithGroup implements slog.Handler.
func (h contextHandler) WithGroup(name string) slog.Handler {
	return contextHandler{h.Handler.WithGroup(name), h.level, h.secrets}
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

// withUTC converts the time of a line.
func withUTC(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}
