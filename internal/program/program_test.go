package program

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/internal/probe"
	"github.com/vedette-io/vedette/internal/version"
)

type testConfig struct {
	testKeys
	path, level string
}

func (testConfig) Effective() []configfile.KeyValue {
	return []configfile.KeyValue{{Key: "port", Value: "1", From: "default"}}
}

func (c testConfig) Warnings() []string {
	if c.path == "weak.yml" {
		return []string{"the port is open"}
	}
	return nil
}

func (c testConfig) Notices() []string { return []string{"about " + c.path} }

func (testConfig) Unused() []string { return []string{"x.yml:1:1: redis: Not used."} }

func (c testConfig) InactiveSettings() []configfile.Inactive {
	if c.path == "weak.yml" {
		return []configfile.Inactive{{Key: "redis", At: configfile.Position{File: "x.yml", Line: 1, Column: 1}, Reason: "Not used."},
			{Key: "hub", At: configfile.Position{File: "x.yml", Line: 2, Column: 1}, Reason: "It is gone.", IsReliedOn: true}}
	}
	return nil
}

// Port is the only key, so that one variable exists.
type testKeys struct {
	Port int `config:"port"`
}

var timePattern = regexp.MustCompile(`time=\S+ `)

// remarks is what check prints about each file, in the environment of TestEveryCommandLineIsAnswered.
func remarks(path string) string {
	return "warning: environment variable without effect: VEDETTE_PROGTEST_PROT: did you mean VEDETTE_PROGTEST_PORT?\nnote: about " + path +
		"\nwithout effect: x.yml:1:1: redis: Not used.\n"
}

func checkTestConfig(cfg testConfig) error {
	if cfg.path == "a.yml" {
		return errors.Join(errors.New("checked a.yml"), errors.New("twice, at http://u:hunter2@h/"))
	}
	return nil
}

func probeTestConfig(cfg testConfig) ([]probe.Probe, error) {
	return []probe.Probe{probe.One("database", func(context.Context) (string, error) {
		if cfg.path == "down.yml" {
			return "", errors.New("it is down")
		}
		return cfg.path, nil
	})}, nil
}

// TestEveryCommandLineIsAnswered runs each form of the command line, and compares what is printed.
func TestEveryCommandLineIsAnswered(t *testing.T) {
	const valid = "the configuration is valid: 0 errors, 1 warning, 1 note\n"
	t.Setenv("VEDETTE_PROGTEST_PROT", "secret")
	for _, tt := range []struct {
		args, out, errOut, err string
	}{
		{"version", version.String() + "\n", "", ""},
		{"--config a.yml version", version.String() + "\n", "", ""},
		{"--version", version.String() + "\n", "", ""},
		{"--config missing.yml --version", version.String() + "\n", "", ""},
		{"--help", "", "usage\n", ""},
		{"man 2026-11-27", ".TH \"PROG\" 8 \"2026\\-11\\-27\" Vedette \"Vedette's services\"\n.SH NAME\nprog \\- usage\n.SH DESCRIPTION\n.nf\n.fi\n.SH \"SEE ALSO\"\n.BR vedette (1)\n", "", ""},
		{"man", "", "", "prog man 2026-11-27"},
		{"man today", "", "", `"today" is not a date`},
		{"serve", "", "", `unknown command "serve"; see prog --help`},
		{"check a.yml", "", "", `check takes no argument "a.yml": name a file with --config`},
		{"--nonsense", "", "flag provided but not defined: -nonsense\nusage\n", "see prog --help"},
		{"check --config a.yml", "error: checked a.yml\nerror: twice, at http://u:********@h/\n" + remarks("a.yml") + "the configuration cannot be used: 2 errors, 1 warning, 1 note\n",
			"", "the configuration has 2 errors"},
		{"check --config missing.yml", "error: missing.yml is missing\nthe configuration cannot be used: 1 error, 0 warnings, 0 notes\n", "", "the configuration has 1 error"},
		{"check --connect --config a.yml", remarks("a.yml") + "failed  configuration: checked a.yml; twice, at http://u:********@h/\nok      database: a.yml\n", "", "1 of 2 checks failed"},
		{"check --config good.yml", remarks("good.yml") + valid, "", ""},
		{"check --config weak.yml", "warning: the port is open\nwarning: environment variable without effect: VEDETTE_PROGTEST_PROT: did you mean VEDETTE_PROGTEST_PORT?\n" +
			"warning: setting without effect: x.yml:2:1: hub: It is gone.\nnote: about weak.yml\nwithout effect: x.yml:1:1: redis: Not used.\n" +
			"the configuration is valid: 0 errors, 3 warnings, 1 note\n", "", ""},
		{"check --strict --config good.yml", remarks("good.yml") + valid, "", "the configuration has 1 warning, which --strict does not allow"},
		{"check --connect --config good.yml", remarks("good.yml") + "ok      configuration\nok      database: good.yml\n", "", ""},
		{"check --connect --strict --config good.yml", remarks("good.yml") + "ok      configuration\nok      database: good.yml\n", "", "--strict"},
		{"check --connect --effective --config good.yml", remarks("good.yml") + "ok      configuration\nok      database: good.yml\nport of good.yml\nrunning good.yml\nport = 1 (default)\n", "", ""},
		{"check --effective --config good.yml", remarks("good.yml") + valid + "port of good.yml\nrunning good.yml\nport = 1 (default)\n", "", ""},
		{"check --connect --config down.yml", remarks("down.yml") + "ok      configuration\nfailed  database: it is down\n", "", "1 of 2 checks failed"},
		{"--connect --config a.yml", "", "flag provided but not defined: -connect\nusage\n", "see prog --help"},
		{"--config missing.yml", "", "", "missing.yml is missing"},
		{"--config loud.yml", "", "", "log level"},
		{"--config a.yml --data-dir /d", `level=WARN msg="environment variable without effect" variable="VEDETTE_PROGTEST_PROT: did you mean VEDETTE_PROGTEST_PORT?"` + "\nran a.yml in /d\n", "", ""},
		{"rules one --config a.yml --all two", "rules of a.yml: one two, all true\n", "", ""},
		{"rules", "rules of : , all false\n", "", ""},
		{"rules --help", "", "usage\n", ""},
		{"rules one --nonsense", "", "flag provided but not defined: -nonsense\nusage\n", "see prog --help"},
		{"rules --config missing.yml", "", "", "missing.yml is missing"},
	} {
		var out, errOut bytes.Buffer
		dataDir, all := "", false
		p := Program[testConfig]{
			Name: "prog", Usage: "usage\n",
			AddFlags: func(flags *flag.FlagSet) { flags.StringVar(&dataDir, "data-dir", "", "") },
			Load: func(path string) (testConfig, error) {
				if path == "missing.yml" {
					return testConfig{}, errors.New("missing.yml is missing")
				}
				return testConfig{path: path, level: map[string]string{"loud.yml": "loud"}[path]}, nil
			},
			Commands: map[string]Command[testConfig]{"rules": {
				AddFlags: func(flags *flag.FlagSet) { flags.BoolVar(&all, "all", false, "") },
				Run: func(_ context.Context, cfg testConfig, args []string, out, _ io.Writer) error {
					_, err := fmt.Fprintf(out, "rules of %s: %s, all %v\n", cfg.path, strings.Join(args, " "), all)
					return err
				},
			}},
			Running: func(_ context.Context, cfg testConfig) []string { return []string{"running " + cfg.path} },
			Check:   checkTestConfig,

			Connections: func(cfg testConfig) []string { return []string{"port of " + cfg.path} },
			Probes:      probeTestConfig,
			EnvPrefix:   "VEDETTE_PROGTEST_",
			LogConfig:   func(cfg testConfig) logging.Config { return logging.Config{Level: cfg.level} },
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
		printed := timePattern.ReplaceAllString(out.String(), "")
		if printed != tt.out || errOut.String() != tt.errOut || !strings.Contains(got, tt.err) || (tt.err == "") != (err == nil) {
			t.Errorf("%s: got %q, %q, error %q, want %q, %q, error %q", tt.args, printed, errOut.String(), got, tt.out, tt.errOut, tt.err)
		}
	}
}

// secretConfig has secrets.
type secretConfig struct{ testConfig }

func (secretConfig) SecretValues() []string { return []string{"hunter2-and-more"} }

// TestSecretsAreMasked checks that the secrets of a configuration stay out of the log from the start.
func TestSecretsAreMasked(t *testing.T) {
	var out bytes.Buffer
	p := Program[secretConfig]{
		Load:      func(string) (secretConfig, error) { return secretConfig{}, nil },
		LogConfig: func(secretConfig) logging.Config { return logging.Config{} },
		Run: func(_ context.Context, _ secretConfig, log *slog.Logger) error {
			log.Info("token hunter2-and-more")
			return nil
		},
	}
	if err := p.run(t.Context(), nil, &out, &out); err != nil || !strings.Contains(out.String(), `msg="token ***"`) {
		t.Errorf("got %s, %v", out.String(), err)
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
	for _, args := range [][]string{nil, {"check"}, {"rules"}} {
		closed := false
		stillOpen := func(cfg closingConfig) error {
			if *cfg.closed {
				t.Errorf("%q: the configuration was closed while it was used", args)
			}
			return nil
		}
		p := Program[closingConfig]{
			Load:      func(string) (closingConfig, error) { return closingConfig{closed: &closed}, nil },
			Check:     stillOpen,
			LogConfig: func(closingConfig) logging.Config { return logging.Config{} },
			Run:       func(_ context.Context, cfg closingConfig, _ *slog.Logger) error { return stillOpen(cfg) },
			Commands: map[string]Command[closingConfig]{"rules": {
				Run: func(_ context.Context, cfg closingConfig, _ []string, _, _ io.Writer) error { return stillOpen(cfg) },
			}},
		}
		if err := p.run(t.Context(), args, &bytes.Buffer{}, &bytes.Buffer{}); err != nil || !closed {
			t.Errorf("%q: got %v, closed %v", args, err, closed)
		}
	}
}

// TestStopIsNoFailure checks that a program that a signal ends while it waits does not fail, and that one
// that fails by itself does, also if a signal arrives then.
func TestStopIsNoFailure(t *testing.T) {
	signal, failure := errors.New("terminated"), errors.New("the port is in use")
	for _, tt := range []struct {
		name      string
		err, want error
	}{
		{"by the signal", fmt.Errorf("open the database: %w", signal), nil},
		{"by the context", fmt.Errorf("open the database: %w", context.Canceled), nil},
		{"by itself", failure, failure},
		{"at once", nil, nil},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		p := Program[testConfig]{
			Load:      func(string) (testConfig, error) { return testConfig{}, nil },
			LogConfig: func(testConfig) logging.Config { return logging.Config{} },
			Run: func(context.Context, testConfig, *slog.Logger) error {
				cancel(signal)
				return tt.err
			},
		}
		if err := p.run(ctx, nil, &bytes.Buffer{}, &bytes.Buffer{}); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
}
