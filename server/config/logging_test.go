package config

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/logging"
)

func parseText(text string) (*Config, error) { return parse("server.yml", []byte(text), testEnv) }

// TestLoggingConfig checks the conversion of all settings, and their defaults.
func TestLoggingConfig(t *testing.T) {
	for text, want := range map[string]logging.File{
		"": {Path: "stdout", MaxSizeMB: 1, MaxAgeDays: 10, MaxBackups: 10},
		"logging: {file: /s.log, multiWrite: true, maxSizeMb: 2, maxAgeDays: 3, maxBackups: 4, localTime: false, compress: true}": {
			Path: "/s.log", MultiWrite: true, MaxSizeMB: 2, MaxAgeDays: 3, MaxBackups: 4, UTC: true, Compress: true},
	} {
		c, err := parseText(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Logging.Config(); got.File != want || got.UTC != want.UTC || got.Level != "info" || got.Format != "text" {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
	for _, invalid := range []string{"maxSizeMb: -1", "maxAgeDays: 106752", "maxBackups: 1048577"} {
		if _, err := parseText("logging: {" + invalid + "}"); err == nil || !strings.Contains(err.Error(), "must be from 0 to") {
			t.Errorf("%s: got %v, want an error", invalid, err)
		}
	}
}
