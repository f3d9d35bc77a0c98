package config

import (
	"strings"

	"github.com/vedette-io/vedette/internal/logging"
)

// Logging configures the log. If a file cannot be written, its lines go to standard error until it can.
type Logging struct {
	// Lowest level to log: trace, debug, info, warn, error, fatal or panic, ignoring case.
	Level string `config:"level" default:"info" env:"LOG_LEVEL"`
	// text or json.
	Format string `config:"format" default:"text"`
	// Where to log: stdout, stderr, or the path of a file.
	File string `config:"file" default:"stdout"`
	// Log to standard output in addition to the file.
	MultiWrite bool `config:"multiWrite" default:"false"`
	// Size at which a new file is started, in MB; 0 for 100. The old file keeps its name with a date.
	MaxSizeMB int `config:"maxSizeMb" default:"1"`
	// Time for which old files are kept, in days; 0 for ever.
	MaxAgeDays int `config:"maxAgeDays" default:"10"`
	// Number of old files that are kept; 0 for all.
	MaxBackups int `config:"maxBackups" default:"10"`
	// Use local time in log lines and in the names of old files, instead of UTC.
	LocalTime bool `config:"localTime" default:"true"`
	// Compress old files with gzip.
	Compress bool `config:"compress" default:"false"`
	// Attributes to add to each line.
	Fields map[string]string `config:"fields"`
}

// Config returns the configuration of the log.
func (l Logging) Config() logging.Config {
	return logging.Config{
		Level: l.Level, Format: l.Format, UTC: !l.LocalTime, Fields: l.Fields,
		File: logging.File{Path: l.File, MultiWrite: l.MultiWrite, MaxSizeMB: l.MaxSizeMB, MaxAgeDays: l.MaxAgeDays, MaxBackups: l.MaxBackups,
			UTC: !l.LocalTime, Compress: l.Compress},
	}
}

func (c *Config) checkLogging(l Logging) {
	if _, err := logging.ParseLevel(l.Level); err != nil {
		c.addProblem("logging.level", "%q: %s", "logging.level", err)
	}
	if !strings.EqualFold(l.Format, logging.Text) && !strings.EqualFold(l.Format, logging.JSON) {
		c.addProblem("logging.format", "%q must be text or json, got %q", "logging.format", l.Format)
	}
	c.checkRange("logging.maxSizeMb", l.MaxSizeMB, logging.MaxFileSizeMB)
	c.checkRange("logging.maxAgeDays", l.MaxAgeDays, logging.MaxFileDays)
	c.checkRange("logging.maxBackups", l.MaxBackups, logging.MaxFileCount)
}

// checkRange checks that a number is from 0 to a maximum.
func (c *Config) checkRange(path string, n, maximum int) {
	if n < 0 || n > maximum {
		c.addProblem(path, "%q must be from 0 to %d, got %d", path, maximum, n)
	}
}
