package config

import (
	"maps"
	"os"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
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
	// Attributes to add to each line. Two of them have a value of their own if theirs is empty: agentCluster
	// (KUBERNETES_SERVICE_NAME, else KUBERNETES_SERVICE_HOST) and agentNamespace (the namespace of the pod).
	Fields map[string]string `config:"fields"`
	// Sent log lines to the vendor of the predecessor.
	Remote configfile.Ignored `config:"remote,ignored"`
}

// Config returns the configuration of the log. env looks up environment variables.
func (l Logging) Config(env func(string) (string, bool)) logging.Config {
	return logging.Config{
		Level: l.Level, Format: l.Format, UTC: !l.LocalTime, Fields: l.fields(env, namespaceFile),
		File: logging.File{Path: l.File, MultiWrite: l.MultiWrite, MaxSizeMB: l.MaxSizeMB, MaxAgeDays: l.MaxAgeDays, MaxBackups: l.MaxBackups,
			UTC: !l.LocalTime, Compress: l.Compress},
	}
}

// fields returns Fields with the values that the agent knows itself.
func (l Logging) fields(env func(string) (string, bool), namespaceFile string) map[string]string {
	fields := maps.Clone(l.Fields)
	if value, ok := fields["agentCluster"]; ok && value == "" {
		fields["agentCluster"] = firstVariable(env, "KUBERNETES_SERVICE_NAME", "KUBERNETES_SERVICE_HOST")
	}
	if value, ok := fields["agentNamespace"]; ok && value == "" {
		namespace, err := os.ReadFile(namespaceFile)
		if err == nil { // otherwise the agent does not run in a pod
			fields["agentNamespace"] = strings.TrimSpace(string(namespace))
		}
	}
	return fields
}

// firstVariable returns the first environment variable that is set and not empty.
func firstVariable(env func(string) (string, bool), names ...string) string {
	for _, name := range names {
		if value, ok := env(name); ok && value != "" {
			return value
		}
	}
	return ""
}

func (c *Config) checkLogging() {
	if _, err := logging.ParseLevel(c.Logging.Level); err != nil {
		c.addProblem("logging.level", "%q: %s", "logging.level", err)
	}
	c.checkOneOf("logging.format", c.Logging.Format, logging.Text, logging.JSON)
	c.checkRange("logging.maxSizeMb", c.Logging.MaxSizeMB, logging.MaxFileSizeMB)
	c.checkRange("logging.maxAgeDays", c.Logging.MaxAgeDays, logging.MaxFileDays)
	c.checkRange("logging.maxBackups", c.Logging.MaxBackups, logging.MaxFileCount)
}

// checkRange checks that a number is from 0 to a maximum.
func (c *Config) checkRange(path string, n, maximum int) {
	if n < 0 || n > maximum {
		c.addProblem(path, "%q must be from 0 to %d, got %d", path, maximum, n)
	}
}
