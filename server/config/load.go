package config

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configload"
	"github.com/vedette-io/vedette/internal/settings"
)

// EnvPrefix is the prefix of environment variables: VEDETTE_SERVER_SQL_PASSWORD sets sql.password.
const EnvPrefix = "VEDETTE_SERVER_"

// defaultDir is the directory in which Load looks for vedette-server.yaml and vedette-server.yml.
const defaultDir = "/opt/vedette/config"

// Load reads the file at path and its overlays. If path is "", it searches the default directory. If
// there is no file, it uses the defaults and adds a notice. The error joins all problems.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	return loadFrom("/", path, env)
}

// loadFrom is Load with another root for the default directory.
func loadFrom(root, path string, env func(string) (string, bool)) (*Config, error) {
	c, _, err := location{root, path, env, ""}.load(nil)
	return c, err
}

// location is where a configuration is loaded from.
type location struct {
	root, path string
	env        func(string) (string, bool)
	dataDir    string // of UseDataDir; empty if it was not called
}

// load loads a configuration that may follow another one, if before is not nil. It also returns the files that were read
// or looked for, whether or not there is an error.
func (l location) load(before *configload.Loaded) (*Config, []configfile.File, error) {
	place := configfile.Place{Dir: filepath.Join(l.root, defaultDir), Name: "vedette-server"}
	search := configfile.Search{File: l.path, Places: []configfile.Place{place}}
	c := decode(configfile.Read(search, options(l.env), Config{}), before)
	c.location = l
	files := c.Report.Files
	c.Path = c.Report.Base
	if c.Path == "" {
		c.Report.Notices = append(c.Report.Notices,
			"no configuration file was found at "+defaultDir+"/vedette-server.yaml or .yml: using the defaults")
	}
	c, err := c.finish()
	if err == nil && l.dataDir != "" {
		c.UseDataDir(l.dataDir)
	}
	return c, files, err
}

func options(env func(string) (string, bool)) configfile.Options {
	return configfile.Options{Env: env, EnvPrefix: EnvPrefix, Renames: renames,
		OtherProductKeys: slices.Concat(otherProductKeys[:], settings.SpringKeys[:]),
		Program:          "vedette-server", Reference: "docs/config-server.md", Other: agent}
}

func decode(files *configfile.Content, before *configload.Loaded) *Config {
	c, loaded := configload.Load[Config](files, before)
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
