package config

import (
	"errors"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret/engines"
)

// EnvPrefix is the prefix of environment variables: VEDETTE_SERVER_SQL_PASSWORD sets sql.password.
const EnvPrefix = "VEDETTE_SERVER_"

// defaultPaths are the configuration files that Load looks for, in this order.
var defaultPaths = [...]string{
	"opt/vedette/config/vedette-server.yaml",
	"opt/vedette/config/vedette-server.yml",
}

// Load reads the file at path. If path is "", it reads the first of the default paths whose file is
// not empty. If there is none, it uses the defaults and adds a notice. The error joins all
// problems.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	return loadFrom("/", path, env)
}

// loadFrom is Load with another root for the default paths.
func loadFrom(root, path string, env func(string) (string, bool)) (*Config, error) {
	c := &Config{}
	var err error
	o := c.withSecrets(options(env), func(o configfile.Options, into any) {
		_, _, _ = configfile.LoadFirst(root, path, defaultPaths[:], o, into)
	})
	c.Path, c.report, err = configfile.LoadFirst(root, path, defaultPaths[:], o, c)
	if err != nil {
		return nil, err
	}
	found := c.Path != ""
	c, err = c.finish()
	if err == nil && !found {
		c.notices = append(c.notices, "no configuration file was found at /"+strings.Join(defaultPaths[:], ", /")+": using the defaults")
	}
	return c, err
}

func options(env func(string) (string, bool)) configfile.Options {
	return configfile.Options{Env: env, EnvPrefix: EnvPrefix, Renames: renames[:]}
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
