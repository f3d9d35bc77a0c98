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
	c, _, err := source{root, path, env, ""}.load(engines.NewLoader)
	return c, err
}

// source is where a configuration is loaded from.
type source struct {
	root, path string
	env        func(string) (string, bool)
	dataDir    string // of UseDataDir; empty if it was not called
}

// loaderFunc returns what resolves the references of a configuration.
type loaderFunc func(o configfile.Options, read func(o configfile.Options, into any)) *engines.Loader

// load also returns the files that were read or looked for, whether or not there is an error.
func (s source) load(newLoader loaderFunc) (*Config, []configfile.File, error) {
	c := &Config{source: s}
	place := configfile.Place{Dir: filepath.Join(s.root, defaultDir), Name: "vedette-server"}
	search := configfile.Search{File: s.path, Places: []configfile.Place{place}}
	o := c.withSecrets(options(s.env), newLoader, func(o configfile.Options, into any) { configfile.Load(search, o, into) })
	c.report = configfile.Load(search, o, c)
	files := c.report.Files
	c.Path = c.report.Base
	if c.Path == "" {
		c.notices = append(c.notices, "no configuration file was found at "+defaultDir+"/vedette-server.yaml or .yml: using the defaults")
	}
	c, err := c.finish()
	if err == nil && s.dataDir != "" {
		c.UseDataDir(s.dataDir)
	}
	return c, files, err
}

func options(env func(string) (string, bool)) configfile.Options {
	return configfile.Options{Env: env, EnvPrefix: EnvPrefix, Renames: renames, Foreign: foreign[:]}
}

// parse reads a configuration from data.
func parse(name string, data []byte, env func(string) (string, bool)) (*Config, error) {
	c := &Config{}
	o := c.withSecrets(options(env), engines.NewLoader, func(o configfile.Options, into any) { configfile.Parse(name, data, o, into) })
	c.report = configfile.Parse(name, data, o, c)
	return c.finish()
}

// withSecrets adds to options that references to secrets are resolved. read reads the configuration.
func (c *Config) withSecrets(o configfile.Options, newLoader loaderFunc, read func(o configfile.Options, into any)) configfile.Options {
	c.secrets = newLoader(o, read)
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
