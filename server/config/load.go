package config

import (
	"errors"
	"path/filepath"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configload"
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

// load also returns the files that were read or looked for, whether or not there is an error.
func (s source) load(newLoader configload.NewLoader) (*Config, []configfile.File, error) {
	place := configfile.Place{Dir: filepath.Join(s.root, defaultDir), Name: "vedette-server"}
	search := configfile.Search{File: s.path, Places: []configfile.Place{place}}
	c := read(options(s.env), newLoader, func(o configfile.Options, into any) *configfile.Report { return configfile.Load(search, o, into) })
	c.source = s
	files := c.Report.Files
	c.Path = c.Report.Base
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
	return read(options(env), engines.NewLoader, func(o configfile.Options, into any) *configfile.Report {
		return configfile.Parse(name, data, o, into)
	}).finish()
}

// read reads a configuration by decode.
func read(o configfile.Options, newLoader configload.NewLoader, decode func(o configfile.Options, into any) *configfile.Report) *Config {
	c, loaded := configload.Read[Config](o, newLoader, decode)
	c.Loaded = loaded
	return c
}

func (c *Config) finish() (*Config, error) {
	c.validate()
	c.chooseDatabase()
	if err := c.Report.Err(); err != nil {
		err = errors.Join(err, c.Close())
		return nil, vedette.Errorf(vedette.Invalid, "%w", err)
	}
	return c, nil
}
