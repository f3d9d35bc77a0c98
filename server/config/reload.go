package config

import (
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configload"
)

// Next loads the configuration again from where c was loaded, as configload.Next.
func (c *Config) Next() (*Config, []configfile.File, error) {
	return configload.Next(c, c.source.load, "server")
}

// liveKeys are the settings that can change while the server runs.
var liveKeys = configload.LiveKeys{
	"logging.level", "cache.kinds", "cache.omitKinds", "cache.all", "kubesvc.cache.cacheDefaults", "credentials.", "secrets.", "spring.",
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
