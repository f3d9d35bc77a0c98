package config

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configload"
	"github.com/vedette-io/vedette/internal/settings"
)

// EnvPrefix is the prefix of environment variables: VEDETTE_AGENT_CLOUDDRIVER_GRPC
// sets clouddriver.grpc.
const EnvPrefix = "VEDETTE_AGENT_"

// vedetteDir is the directory of Vedette's own files. The others are the predecessor's, so that its
// users can keep their files.
const vedetteDir = "/opt/vedette/config"

// scaleAgentDirs are the directories of the Scale Agent, in the order in which they are searched. A
// leading ~ is the home directory.
var scaleAgentDirs = [...]string{
	"/opt/armory/config", "/opt/spinnaker/config", "/home/spinnaker/config", "/root/config", "/opt/go-application/config",
	"~/.spinnaker", "~/.armory",
}

// places returns where Load looks for files if none is named. All directories are below root.
func places(root string, env func(string) (string, bool)) []configfile.Place {
	home := ""
	if env != nil {
		home, _ = env("HOME")
	}
	found := []configfile.Place{{Dir: filepath.Join(root, vedetteDir), Name: "vedette-agent"}}
	for _, dir := range scaleAgentDirs {
		if below, isHome := strings.CutPrefix(dir, "~"); isHome {
			if home == "" {
				continue
			}
			dir = filepath.Join(home, below)
		}
		dir = filepath.Join(root, dir)
		found = append(found, configfile.Place{Dir: dir, Name: "armory-agent"}, configfile.Place{Dir: dir, Name: "kubesvc"})
	}
	return found
}

// Load reads the file at path and its overlays. If path is "", it searches the default places. If
// there is no file, it uses the defaults, without accounts, and adds a notice.
//
// The error joins all problems outside of accounts. Invalid accounts are not errors:
// they are in Config.RejectedAccounts. If Load returns an error, the Config is nil.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	return loadWithRoot("/", path, env)
}

// loadWithRoot is Load with another root for the default places.
func loadWithRoot(root, path string, env func(string) (string, bool)) (*Config, error) {
	c, _, err := location{root, path, env}.load(nil)
	return c, err
}

// location is where a configuration is loaded from.
type location struct {
	root, path string
	env        func(string) (string, bool)
}

// load loads a configuration that may follow another one, if before is not nil. It also returns the files that were read
// or looked for, whether or not there is an error.
func (l location) load(before *configload.Loaded) (*Config, []configfile.File, error) {
	c := decode(configfile.Read(configfile.Search{File: l.path, Places: places(l.root, l.env)}, options(l.env), Config{}), before)
	c.location = l
	files := c.Report.Files
	c.Path = c.Report.Base
	if c.Path == "" {
		c.Report.Notices = append(c.Report.Notices, "no configuration file was found: using the defaults, without accounts "+
			"(docs/configuration.md lists the files that are looked for, such as "+vedetteDir+"/vedette-agent.yml)")
	}
	c, err := c.validate(l.env)
	return c, files, err
}

func options(env func(string) (string, bool)) configfile.Options {
	return configfile.Options{Env: env, EnvPrefix: EnvPrefix, Renames: renames[:],
		OtherProductKeys: slices.Concat(otherProductKeys[:], settings.SpringKeys[:]),
		Program:          "vedette-agent", Reference: "docs/config-agent.md", Other: server}
}

func decode(files *configfile.Content, before *configload.Loaded) *Config {
	c, loaded := configload.Load[Config](files, before)
	c.Loaded = loaded
	return c
}

// validate checks the settings, rejects invalid accounts, and sets the defaults that
// depend on the environment.
func (c *Config) validate(env func(string) (string, bool)) (*Config, error) {
	c.check()
	c.checkAccounts()
	if problems := c.rejectInvalidAccounts(); len(problems) > 0 {
		err := errors.Join(configfile.Join(problems), c.Close())
		return nil, vedette.Errorf(vedette.Invalid, "%w", err)
	}
	c.setZone(env, namespaceFile)
	return c, c.setAgentID(env)
}

// setAgentID sets the default of agentId. In a pod, HOSTNAME is the pod's name. If the
// pod uses the host's network, HOSTNAME is the node's name: then agentId must be set
// if two agents may run on one node, because names must be unique.
func (c *Config) setAgentID(env func(string) (string, bool)) error {
	if c.AgentID != "" {
		return nil
	}
	if env != nil {
		if name, ok := env("HOSTNAME"); ok && name != "" {
			c.AgentID = vedette.AgentID(name)
			return nil
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("get the host name for agentId: %w", err)
	}
	var suffix [4]byte
	if _, err := rand.Read(suffix[:]); err != nil {
		return fmt.Errorf("generate a random suffix for agentId: %w", err)
	}
	c.AgentID = vedette.AgentID(host + "-" + hex.EncodeToString(suffix[:]))
	return nil
}
