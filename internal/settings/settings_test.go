package settings

import (
	"errors"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/logging"
)

// remarks reads a group at the path p, and returns the problems and notices that a check reports, one a line.
func remarks[G any](t *testing.T, path, text string, check func(group *G, c configfile.Checker)) string {
	t.Helper()
	var group G
	report := configfile.Parse("c.yml", []byte(text), configfile.Options{}, &group)
	check(&group, report.Checker().At(path))
	var lines []string
	for _, p := range report.Problems {
		lines = append(lines, p.Path+": "+p.Message)
	}
	for _, notice := range report.Notices {
		lines = append(lines, "note: "+strings.TrimPrefix(notice, "default: "))
	}
	return strings.Join(lines, "\n")
}

// parse reads a group of keys.
func parse(t *testing.T, text string, into any) {
	t.Helper()
	report := configfile.Parse("c.yml", []byte(text), configfile.Options{}, into)
	if err := errors.Join(report.Err()); err != nil {
		t.Fatal(err)
	}
}

func TestContradictingSSLSettingsAreReported(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"{enabled: true, certFile: c, keyFile: k}":                      "",
		"{enabled: true, certFile: c, clientAuth: need, cacertFile: a}": "",
		"enabled: true": `p.enabled: "p.enabled" is true, but "p.certFile" is missing (hint)`,
		"certFile: c":   "note: p.certFile is set, but p.enabled is not true: the port is plain HTTP",
		"{enabled: true, certFile: 'classpath:c'}":                `p.certFile: "p.certFile" must be the path of a file, optionally with the prefix file:`,
		"{enabled: true, certFile: c, keyFile: 'configserver:k'}": `p.keyFile: "p.keyFile" must be the path of a file, optionally with the prefix file:`,
		"{enabled: true, certFile: c, clientAuth: need}":          `p.clientAuth: "p.clientAuth" is need, but "p.cacertFile" is missing: set it to the file with the authorities that sign client certificates`,
		"{enabled: true, certFile: c, cacertFile: a}":             "note: p.cacertFile is set, but p.clientAuth is not: client certificates are not requested",
		"clientAuth: want": `p.clientAuth: "p.clientAuth" is want, but "p.enabled" is not true: client certificates require TLS`,
		"{enabled: true, certFile: c, clientAuth: maybe, cacertFile: 'file:a'}": `p.clientAuth: "p.clientAuth": the mode of client certificates must be none, request, any, want, optional, need or require, got "maybe"`,
	} {
		if got := remarks(t, "p", text, func(s *SSL, c configfile.Checker) { s.Check(" (hint)", c) }); got != want {
			t.Errorf("%s: got %s\nwant %s", text, got, want)
		}
	}
}

// TestSSLKeyPair checks the files of a port, and the two names of the key's password.
func TestSSLKeyPair(t *testing.T) {
	for text, want := range map[string]keypair.Files{
		"certFile: 'file:/c'":                             {Cert: "/c"},
		"{certFile: /c, keyFile: 'file:/k'}":              {Cert: "/c", Key: "/k"},
		"{certFile: /c, keyFile: /k, keyPassword: p}":     {Cert: "/c", Key: "/k", Password: "p"},
		"{certFile: /c, keyFile: /k, keyFilePassword: q}": {Cert: "/c", Key: "/k", Password: "q"},
	} {
		var s SSL
		parse(t, text, &s)
		if got := s.keyPair(); got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}

func TestOnlyRequiredCertificatesAuthenticate(t *testing.T) {
	for _, tt := range []struct {
		ssl  SSL
		want bool
	}{
		{SSL{Enabled: true, ClientAuth: "need"}, true}, {SSL{Enabled: false, ClientAuth: "need"}, false},
		{SSL{Enabled: true, ClientAuth: "want"}, false}, {SSL{Enabled: true, ClientAuth: "?"}, false},
	} {
		if got := tt.ssl.Authenticates(); got != tt.want {
			t.Errorf("%+v: got %v", tt.ssl, got)
		}
	}
}

// TestLoggingSettingsAreConverted checks all settings, their defaults, and which are rejected.
func TestLoggingSettingsAreConverted(t *testing.T) {
	for text, want := range map[string]logging.Config{
		"": {Level: "info", Format: "text", File: logging.File{Path: "stdout", MaxSizeMB: 1, MaxAgeDays: 10, MaxBackups: 10, LocalTime: true}},
		"{level: debug, format: json, file: /a.log, multiWrite: true, maxSizeMb: 2, maxAgeDays: 3, maxBackups: 4, localTime: false, compress: true}": {
			Level: "debug", Format: "json",
			File: logging.File{Path: "/a.log", MultiWrite: true, MaxSizeMB: 2, MaxAgeDays: 3, MaxBackups: 4, Compress: true}},
	} {
		var got Logging
		parse(t, text, &got)
		if got.Level != want.Level || got.Format != want.Format || got.File != want.File {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
	var l Logging
	parse(t, "fields: {team: a}", &l)
	if got := l.Fields; len(got) != 1 || got["team"] != "a" {
		t.Errorf("got fields %v", got)
	}
	for text, want := range map[string]string{
		"maxSizeMb: 0": "", "format: JSON": "",
		"maxSizeMb: -1":       `maxSizeMb: "maxSizeMb" must be from 0 to 1048576, got -1`,
		"maxAgeDays: 106752":  `maxAgeDays: "maxAgeDays" must be from 0 to 36500, got 106752`,
		"maxBackups: 1048577": `maxBackups: "maxBackups" must be from 0 to 1048576, got 1048577`,
		"format: xml":         `logging.format: "logging.format" must be one of text, json, scale-agent, scale-agent-json, got "xml"`,
	} {
		if got := remarks(t, "logging", text, func(l *Logging, c configfile.Checker) { l.Check(c) }); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if got := remarks(t, "logging", "level: loud", func(l *Logging, c configfile.Checker) { l.Check(c) }); !strings.HasPrefix(got, "logging.level: ") {
		t.Errorf("got %s, want a problem of the level", got)
	}
}
