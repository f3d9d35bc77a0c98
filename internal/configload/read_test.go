package configload

import (
	"slices"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret/engines"
)

// testConfig is a configuration with a secret.
type testConfig struct {
	Loaded
	Password string           `config:"password"`
	Port     int              `config:"port"`
	Secrets  engines.Settings `config:"secrets"`
}

// TestRead checks that a configuration is decoded as often as its secrets need, with the report of the
// last time.
func TestRead(t *testing.T) {
	for _, tt := range []struct {
		text, password string
		times          int
	}{
		{"password: one\nredis: x\n", "one", 1},
		{"password: encrypted:noop!two\nredis: x\n", "two", 3}, // for references, for the settings of engines, with secrets
	} {
		times := 0
		o := configfile.Options{Foreign: []string{"redis"}}
		c, loaded := Read[testConfig](o, engines.NewLoader, func(o configfile.Options, into any) *configfile.Report {
			times++
			return configfile.Parse("a.yml", []byte(tt.text), o, into)
		})
		c.Loaded = loaded
		if c.Password != tt.password || times != tt.times || !slices.Equal(c.UnknownKeys(), []string{"redis"}) {
			t.Errorf("%s: got %q, %q after %d times, want %q after %d", tt.text, c.Password, c.UnknownKeys(), times, tt.password, tt.times)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLiveKeys checks which settings are in effect after a change.
func TestLiveKeys(t *testing.T) {
	live := LiveKeys{"level", "kinds."}
	settings := func(level, kind, port string) []configfile.KeyValue {
		return []configfile.KeyValue{{Key: "level", Value: level}, {Key: "kinds.all", Value: kind}, {Key: "port", Value: port}}
	}
	before, now := settings("info", "pod", "1"), settings("debug", "job", "2")
	if got := live.Changed(now, before); !slices.Equal(got, []string{"level", "kinds.all"}) {
		t.Errorf("changed: got %q", got)
	}
	if got := live.NeedRestart(now, before); !slices.Equal(got, []string{"port"}) {
		t.Errorf("need a restart: got %q", got)
	}
	if got := live.InEffect(before, now); !slices.Equal(got, settings("debug", "job", "1")) {
		t.Errorf("in effect: got %v", got)
	}
}
