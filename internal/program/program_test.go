package program

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/version"
)

type testConfig struct{ path, level string }

func (testConfig) Effective() []configfile.KeyValue {
	return []configfile.KeyValue{{Key: "port", Value: "1", From: "default"}}
}

func (testConfig) Unused() []string { return []string{"x.yml:1:1: redis"} }

// TestCommandLine runs each form of the command line, and compares what is printed.
func TestCommandLine(t *testing.T) {
	for _, tt := range []struct {
		args, out, errOut, err string
	}{
		{"version", version.String() + "\n", "", ""},
		{"--config a.yml version", version.String() + "\n", "", ""},
		{"--help", "", "usage\n", ""},
		{"serve", "", "", `unknown command "serve"; see prog --help`},
		{"--nonsense", "", "flag provided but not defined: -nonsense\nusage\n", "see prog --help"},
		{"check --config a.yml", "port = 1 (default)\n", "note: about a.yml\nwithout effect: x.yml:1:1: redis\n", "checked a.yml"},
		{"--config missing.yml", "", "", "missing.yml is missing"},
		{"--config loud.yml", "", "", "log level"},
		{"--config a.yml --data-dir /d", "ran a.yml in /d\n", "", ""},
	} {
		var out, errOut bytes.Buffer
		dataDir := ""
		p := Program[testConfig]{
			Name: "prog", Usage: "usage\n",
			AddFlags: func(flags *flag.FlagSet) { flags.StringVar(&dataDir, "data-dir", "", "") },
			Load: func(path string) (testConfig, error) {
				if path == "missing.yml" {
					return testConfig{}, errors.New("missing.yml is missing")
				}
				return testConfig{path, map[string]string{"loud.yml": "loud"}[path]}, nil
			},
			Remarks:    func(cfg testConfig) []string { return []string{"note: about " + cfg.path} },
			Check:      func(cfg testConfig) error { return errors.New("checked " + cfg.path) },
			LogOptions: func(cfg testConfig) (string, string) { return cfg.level, "" },
			Run: func(_ context.Context, cfg testConfig, _ *slog.Logger) error {
				_, err := out.WriteString("ran " + cfg.path + " in " + dataDir + "\n")
				return err
			},
		}
		err := p.run(t.Context(), strings.Fields(tt.args), &out, &errOut)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if out.String() != tt.out || errOut.String() != tt.errOut || !strings.Contains(got, tt.err) || (tt.err == "") != (err == nil) {
			t.Errorf("%s: got %q, %q, error %q, want %q, %q, error %q", tt.args, out.String(), errOut.String(), got, tt.out, tt.errOut, tt.err)
		}
	}
}

// closingConfig has something to remove at the end.
type closingConfig struct {
	testConfig
	closed *bool
}

func (c closingConfig) Close() error {
	*c.closed = true
	return nil
}

// TestConfigurationIsClosed checks that a configuration is closed at the end, and not before.
func TestConfigurationIsClosed(t *testing.T) {
	for _, args := range [][]string{nil, {"check"}} {
		closed := false
		stillOpen := func(cfg closingConfig) error {
			if *cfg.closed {
				t.Errorf("%q: the configuration was closed while it was used", args)
			}
			return nil
		}
		p := Program[closingConfig]{
			Load:       func(string) (closingConfig, error) { return closingConfig{closed: &closed}, nil },
			Check:      stillOpen,
			LogOptions: func(closingConfig) (string, string) { return "", "" },
			Run:        func(_ context.Context, cfg closingConfig, _ *slog.Logger) error { return stillOpen(cfg) },
		}
		if err := p.run(t.Context(), args, &bytes.Buffer{}, &bytes.Buffer{}); err != nil || !closed {
			t.Errorf("%q: got %v, closed %v", args, err, closed)
		}
	}
}
