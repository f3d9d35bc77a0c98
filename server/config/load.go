package config

import (
	"path/filepath"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
)

// EnvPrefix is the prefix of environment variables: VEDETTE_SERVER_SQL_PASSWORD sets sql.password.
const EnvPrefix = "VEDETTE_SERVER_"

// defaultDir is the folder in which Load looks for vedette-server.yaml and vedette-server.yml.
const defaultDir = "/opt/vedette/config"

// Load reads the file at path and its overlays. If path is "", it searches the default folder. If
// there is no file, it uses the defaults and adds a notice. The error joins all problems.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	return loadFrom("/", path, env)
}

// loadFrom is Load with another root for the default folder.
func loadFrom(root, path string, env func(string) (string, bool)) (*Config, error) {
	c := &Config{}
	place := configfile.Place{Dir: filepath.Join(root, defaultDir), Name: "vedette-server"}
	c.report = configfile.Load(configfile.Search{File: path, Places: []configfile.Place{place}}, options(env), c)
	c.Path = c.report.Base
	if c.Path == "" {
		c.notices = append(c.notices, "no configuration file was found at "+defaultDir+"/vedette-server.yaml or .yml: using the defaults")
	}
	return c.finish()
}

func options(env func(string) (string, bool)) configfile.Options {
	return configfile.Options{Env: env, EnvPrefix: EnvPrefix, Renames: renames, Foreign: foreign[:]}
}

// parse reads a configuration from data.
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
