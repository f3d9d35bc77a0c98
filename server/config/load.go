package config

import (
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
)

// EnvPrefix is what stands before a key's name in the environment:
// VEDETTE_SERVER_SQL_PASSWORD sets sql.password.
const EnvPrefix = "VEDETTE_SERVER_"

// defaultPaths are where a file is looked for, in this order.
var defaultPaths = [...]string{
	"opt/vedette/config/vedette-server.yaml",
	"opt/vedette/config/vedette-server.yml",
}

// Load reads the file at path. An empty path means the first of the default
// paths at which a file with something in it stands; without any, defaults
// count, and a notice says so. The error joins all that is wrong.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	return loadFrom("/", path, env)
}

// loadFrom is Load with another root for the default paths.
func loadFrom(root, path string, env func(string) (string, bool)) (*Config, error) {
	c := &Config{}
	var err error
	if c.Path, c.report, err = configfile.LoadFirst(root, path, defaultPaths[:], options(env), c); err != nil {
		return nil, err
	}
	found := c.Path != ""
	c, err = c.finish()
	if err == nil && !found {
		c.notices = append(c.notices, "no configuration file was found at /"+strings.Join(defaultPaths[:], ", /")+": defaults count")
	}
	return c, err
}

func options(env func(string) (string, bool)) configfile.Options {
	return configfile.Options{Env: env, EnvPrefix: EnvPrefix, Renames: renames[:]}
}

// parse configures from bytes.
func parse(name string, data []byte, env func(string) (string, bool)) (*Config, error) {
	c := &Config{}
	c.report = configfile.Parse(name, data, options(env), c)
	return c.finish()
}

func (c *Config) finish() (*Config, error) {
	c.validate()
	c.chooseDatabase()
	if err := c.report.Err(); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "%w", err)
	}
	return c, nil
}
