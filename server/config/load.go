package config

import (
	"errors"
	"path/filepath"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret/engines"
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
	search := configfile.Search{File: path, Places: []configfile.Place{place}}
	o := c.withSecrets(options(env), func(o configfile.Options, into any) { configfile.Load(search, o, into) })
	c.report = configfile.Load(search, o, c)
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
	o := c.withSecrets(options(env), func(o configfile.Options, into any) { configfile.Parse(name, data, o, into) })
	c.report = configfile.Parse(name, data, o, c)
	return c.finish()
}

// withSecrets adds to options that references to secrets are resolved. read reads the configuration.
func (c *Config) withSecrets(o configfile.Options, read func(o configfile.Options, into any)) configfile.Options {
	c.secrets = engines.NewLoader(o, read)
	c.secrets.Prefetch(&Config{})
	o.Secrets = c.secrets.Resolve
	return o
}

func (c *Config) finish() (*Config, error) {
	c.validate()
	c.chooseDatabase()
	if err := c.report.Err(); err != nil {
		err = errors.Join(err, c.Close())
		return nil, vedette.Errorf(vedette.Invalid, "%w", err)
	}
	return c, nil
}
