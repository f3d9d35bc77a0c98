package config

import (
	"slices"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configload"
	"github.com/vedette-io/vedette/internal/configreload"
)

// Next loads the configuration again from where c was loaded, as configload.Next.
func (c *Config) Next() (*Config, []configfile.File, error) {
	return configload.Next(c, c.location.load, "server")
}

// applied are the settings that the running server uses as soon as they change.
var applied = configreload.Reloadable{"cache.kinds", "cache.omitKinds", "cache.all", "kubesvc.cache.cacheDefaults", "credentials."}

// reloadable are the keys that a running server reloads.
var reloadable = slices.Concat(applied, configreload.Reloadable{"logging.level", "secrets.", "spring."})

// Reloadable returns the keys that a running server reloads.
func (c *Config) Reloadable() configreload.Reloadable { return reloadable }

// LogLevel returns the lowest level to log.
func (c *Config) LogLevel() string { return c.Logging.Level }

// ChangedApplied returns the keys whose values differ from before and that the running server uses.
func (c *Config) ChangedApplied(before *Config) []string {
	return applied.Changed(c.Effective(), before.Effective())
}

// NeedRestart returns the keys whose values differ from before and which count from the next start on
// only. Of secrets only the access to the database is compared.
func (c *Config) NeedRestart(before *Config) []string {
	keys := reloadable.NeedRestart(c.Effective(), before.Effective())
	if len(keys) == 0 && c.Database().Reveal() != before.Database().Reveal() {
		keys = append(keys, "sql")
	}
	return keys
}
