package settings

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/logging"
)

// remarks returns the problems and notices that a check reports, one a line.
func remarks(check func(r Reporter)) string {
	var lines []string
	check(Reporter{
		Problem: func(path, format string, args ...any) { lines = append(lines, path+": "+fmt.Sprintf(format, args...)) },
		Notice:  func(path, text string) { lines = append(lines, path+": note: "+text) },
	})
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

func TestSSL(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"{enabled: true, certFile: c, keyFile: k}":                      "",
		"{enabled: true, certFile: c, clientAuth: need, cacertFile: a}": "",
		"enabled: true": `p.enabled: "p.enabled" is true, but "p.certFile" is missing (hint)`,
		"certFile: c":   "p.certFile: note: p.certFile is set, but p.enabled is not true: the port is plain HTTP",
		"{enabled: true, certFile: 'classpath:c'}":                `p.certFile: "p.certFile" must be the path of a file, optionally with the prefix file:`,
		"{enabled: true, certFile: c, keyFile: 'configserver:k'}": `p.keyFile: "p.keyFile" must be the path of a file, optionally with the prefix file:`,
		"{enabled: true, certFile: c, clientAuth: need}":          `p.clientAuth: "p.clientAuth" is need, but "p.cacertFile" is missing: set it to the file with the authorities that sign client certificates`,
		"{enabled: true, certFile: c, cacertFile: a}":             "p.cacertFile: note: p.cacertFile is set, but p.clientAuth is not: client certificates are not requested",
		"clientAuth: want": `p.clientAuth: "p.clientAuth" is want, but "p.enabled" is not true: client certificates require TLS`,
		"{enabled: true, certFile: c, clientAuth: maybe, cacertFile: 'file:a'}": `p.clientAuth: "p.clientAuth": the mode of client certificates must be none, request, any, want, optional, need or require, got "maybe"`,
	} {
		var s SSL
		parse(t, text, &s)
		if got := remarks(func(r Reporter) { s.Check("p", " (hint)", r) }); got != want {
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

func TestSSLAuthenticates(t *testing.T) {
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

// TestLoggingConfig checks the conversion of all settings, their defaults, and which are rejected.
func TestLoggingConfig(t *testing.T) {
	for text, want := range map[string]logging.Config{
		"": {Level: "info", Format: "text", File: logging.File{Path: "stdout", MaxSizeMB: 1, MaxAgeDays: 10, MaxBackups: 10}},
		"{level: debug, format: json, file: /a.log, multiWrite: true, maxSizeMb: 2, maxAgeDays: 3, maxBackups: 4, localTime: false, compress: true}": {
			Level: "debug", Format: "json", UTC: true,
			File: logging.File{Path: "/a.log", MultiWrite: true, MaxSizeMB: 2, MaxAgeDays: 3, MaxBackups: 4, UTC: true, Compress: true}},
	} {
		var l Logging
		parse(t, text, &l)
		if got := l.Config(); got.Level != want.Level || got.Format != want.Format || got.UTC != want.UTC || got.File != want.File {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
	var l Logging
	parse(t, "fields: {team: a}", &l)
	if got := l.Config().Fields; len(got) != 1 || got["team"] != "a" {
		t.Errorf("got fields %v", got)
	}
	for text, want := range map[string]string{
		"maxSizeMb: 0": "", "format: JSON": "",
		"maxSizeMb: -1":       `logging.maxSizeMb: "logging.maxSizeMb" must be from 0 to 1048576, got -1`,
		"maxAgeDays: 106752":  `logging.maxAgeDays: "logging.maxAgeDays" must be from 0 to 36500, got 106752`,
		"maxBackups: 1048577": `logging.maxBackups: "logging.maxBackups" must be from 0 to 1048576, got 1048577`,
		"format: xml":         `logging.format: "logging.format" must be text or json, got "xml"`,
	} {
		l = Logging{}
		parse(t, text, &l)
		if got := remarks(func(r Reporter) { l.Check(r.Problem) }); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if got := remarks(func(r Reporter) { Logging{Level: "loud", Format: "text"}.Check(r.Problem) }); !strings.HasPrefix(got, "logging.level: ") {
		t.Errorf("got %s, want a problem of the level", got)
	}
}

func TestMaxAccounts(t *testing.T) {
	for n, valid := range map[int]bool{-1: false, 0: true, MaxAccounts: true, MaxAccounts + 1: false} {
		if got := remarks(func(r Reporter) { CheckMaxAccounts(n, r.Problem) }); (got == "") != valid {
			t.Errorf("%d: got %q", n, got)
		}
	}
}
