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

// TestSecretsAreResolvedOnLoad checks configurations with and without a secret.
func TestSecretsAreResolvedOnLoad(t *testing.T) {
	for text, password := range map[string]string{"password: one\nredis: x\n": "one", "password: encrypted:noop!two\nredis: x\n": "two"} {
		o := configfile.Options{OtherProductKeys: []string{"redis"}}
		c, loaded := Load[testConfig](configfile.ReadData("a.yml", []byte(text), o, testConfig{}), nil)
		c.Loaded = loaded
		if c.Password != password || !slices.Equal(c.UnknownKeys(), []string{"redis"}) {
			t.Errorf("%s: got %q, %q, want %q", text, c.Password, c.UnknownKeys(), password)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
