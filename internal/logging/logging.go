// Package logging creates the logger of both programs. Lines go to standard output, standard
// error or a file that is rotated, and contain the ids that a context carries.
//
// lumberjack rotates files: its options are the predecessor's keys, and its files have the names that the log collectors of
// its users expect. timberjack, a fork that is released more often, adds rotation by time, which no key asks for, and puts
// the reason of a rotation into the name.
//
// A log never stops the program. slog ignores errors of its writer, so a full disk would lose lines silently. The writer of
// this package reports the first failure on standard error, sends the lines there, tries the file with each line, and reports
// when it works again. A device such as /dev/stderr is written without rotation, because lumberjack would rename it.
//
// Ids come from the context (WithAttrs), so packages do not pass loggers along with requests. An execution id of Spinnaker
// stands in the lines of many requests, so that searching for it shows everything that a pipeline did. Ids of callers that do
// not fit are replaced, and not rejected: a log must not decide what works.
package logging

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/vedette-io/vedette/internal/configfile"
)

// The formats of log lines.
const (
	Text = "text"
	JSON = "json"
	// ScaleAgent and ScaleAgentJSON are the forms of the Scale Agent's lines, with its names of fields.
	ScaleAgent     = "scale-agent"
	ScaleAgentJSON = "scale-agent-json"
)

// Formats are all formats.
var Formats = []string{Text, JSON, ScaleAgent, ScaleAgentJSON}

// IsScaleAgent reports whether a format is one of the Scale Agent's.
func IsScaleAgent(format string) bool {
	return strings.EqualFold(format, ScaleAgent) || strings.EqualFold(format, ScaleAgentJSON)
}

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

// Config configures a log. The zero value logs lines of text from level info on to standard output, with times in UTC.
type Config struct {
	// Lowest level to log: trace, debug, info, warn, error, fatal or panic, ignoring case.
	Level string `config:"level" default:"info" env:"LOG_LEVEL"`
	// text or json; scale-agent or scale-agent-json for lines as the Scale Agent wrote them, with its names of fields, so that filters and
	// alerts for it go on matching (docs/logs.md).
	Format string `config:"format" default:"text"`
	File
	// Attributes to add to each line. An agent gives two of them a value of its own if theirs is empty: agentCluster
	// (KUBERNETES_SERVICE_NAME, else KUBERNETES_SERVICE_HOST) and agentNamespace (the namespace of the pod).
	Fields map[string]string `config:"fields"`
	// Sent log lines to the vendor of the predecessor.
	Remote configfile.Ignored `config:"remote,ignored"`
}

// Check reports what is wrong with the group.
func (cfg Config) Check(c configfile.Checker) {
	if _, err := ParseLevel(cfg.Level); err != nil {
		c.Problem("level", ": %s", err)
	}
	if !slices.Contains(Formats, strings.ToLower(cfg.Format)) {
		c.Problem("format", " must be one of %s, got %q", strings.Join(Formats, ", "), cfg.Format)
	}
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
		if !cfg.LocalTime {
			a = withUTC(groups, a)
		}
		return h.secrets.shorten(groups, replaceLevelName(groups, a))
	}}
	switch strings.ToLower(cfg.Format) {
	case Text, "":
		h.Handler = slog.NewTextHandler(h.secrets, options)
	case JSON:
		h.Handler = slog.NewJSONHandler(visibleJSON{h.secrets}, options)
	case ScaleAgent:
		h.Handler = &scaleAgentHandler{out: h.secrets, mu: &sync.Mutex{}, level: h.level, replace: options.ReplaceAttr,
			encode: scaleAgentLine.encodeText}
	case ScaleAgentJSON:
		h.Handler = &scaleAgentHandler{out: visibleJSON{h.secrets}, mu: &sync.Mutex{}, level: h.level, replace: options.ReplaceAttr,
			encode: scaleAgentLine.encodeJSON}
	default:
		return nil, fmt.Errorf("the log format must be one of %s, got %q", strings.Join(Formats, ", "), cfg.Format)
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

func (h contextHandler) Handle(ctx context.Context, r slog.Record) error {
	if attrs := attrsOf(ctx); len(attrs) > 0 {
		r = r.Clone() // the caller's record may share its memory with other handlers
		r.AddAttrs(attrs...)
	}
	return h.Handler.Handle(ctx, r) //nolint:wrapcheck // errors of a handler belong to whoever logs
}

func (h contextHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return contextHandler{h.Handler.WithAttrs(attrs), h.level, h.secrets}
}

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
