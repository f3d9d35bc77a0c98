package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Next loads the configuration again from where c was loaded, and the files that were read or looked
// for, even if there is an error. Either Adopt or Close the result; c stays in effect until then. Files
// that had content and are empty now are errors, and so is a configuration of which no file is left.
func (c *Config) Next() (*Config, []configfile.File, error) {
	next, files, err := c.source.load(c.secrets.Next)
	if err != nil {
		return nil, files, err
	}
	if err := configfile.CheckLostFiles(c.report, next.report, "server"); err != nil {
		_ = next.Close() // its error would hide the first one
		return nil, files, err
	}
	return next, files, nil
}

// Adopt makes c the successor of the configuration whose Next it is, which must not be used anymore.
func (c *Config) Adopt() error {
	if err := c.secrets.Adopt(); err != nil {
		return fmt.Errorf("remove secrets that are not used anymore: %w", err)
	}
	return nil
}

// reloadable are the paths of the settings that can change while the server runs.
var reloadable = [...]string{
	"logging.level", "cache.kinds", "cache.omitKinds", "cache.all", "kubesvc.cache.cacheDefaults", "credentials.", "secrets.", "spring.",
}

// NeedRestart returns the keys whose values differ from before and which count from the next start on
// only. Of secrets only the access to the database is compared.
func (c *Config) NeedRestart(before *Config) []string {
	keys := slices.DeleteFunc(configfile.ChangedKeys(c.Effective(), before.Effective()), isReloadable)
	if len(keys) == 0 && c.Database().Reveal() != before.Database().Reveal() {
		keys = append(keys, "sql")
	}
	return keys
}

func isReloadable(key string) bool {
	return slices.ContainsFunc(reloadable[:], func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// WithoutValues returns the text of an error of Load or Next for readers who must not see the values of
// the configuration.
func WithoutValues(err error) string { return configfile.WithoutValues(err, &Config{}) }
