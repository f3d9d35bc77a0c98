package config

import (
	"slices"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configload"
)

// Next loads the configuration again from where c was loaded, as configload.Next.
func (c *Config) Next() (*Config, []configfile.File, error) {
	return configload.Next(c, c.source.load, "server")
}

// appliedKeys are the settings that the running server uses as soon as they change.
var appliedKeys = configload.LiveKeys{"cache.kinds", "cache.omitKinds", "cache.all", "kubesvc.cache.cacheDefaults", "credentials."}

// liveKeys are the settings that can change while the server runs.
var liveKeys = slices.Concat(appliedKeys, configload.LiveKeys{"logging.level", "secrets.", "spring."})

// LogLevel returns the lowest level to log.
func (c *Config) LogLevel() string { return c.Logging.Level }

// ChangedLive returns the keys whose values differ from before and that the running server uses.
func (c *Config) ChangedLive(before *Config) []string {
	return appliedKeys.Changed(c.Effective(), before.Effective())
}

// InEffect returns the settings that are in effect in a server that was started with one configuration
// and has adopted c.
func (c *Config) InEffect(started *Config) []configfile.KeyValue {
	return liveKeys.InEffect(started.Effective(), c.Effective())
}

// NeedRestart returns the keys whose values differ from before and which count from the next start on
// only. Of secrets only the access to the database is compared.
func (c *Config) NeedRestart(before *Config) []string {
	keys := liveKeys.NeedRestart(c.Effective(), before.Effective())
	if len(keys) == 0 && c.Database().Reveal() != before.Database().Reveal() {
		keys = append(keys, "sql")
	}
	return keys
}
