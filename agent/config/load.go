package config

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret/engines"
)

// EnvPrefix is the prefix of environment variables: VEDETTE_AGENT_CLOUDDRIVER_GRPC
// sets clouddriver.grpc.
const EnvPrefix = "VEDETTE_AGENT_"

// defaultPaths are the configuration files that Load looks for, in this order. They
// are the predecessor's, so that its users can keep their file.
var defaultPaths = [...]string{
	"opt/armory/config/armory-agent.yaml",
	"opt/armory/config/armory-agent.yml",
	"opt/spinnaker/config/kubesvc.yaml",
	"opt/spinnaker/config/kubesvc.yml",
}

// Load reads the file at path. If path is "", it reads the first of the default
// paths whose file is not empty. If there is none, it uses the defaults, without
// accounts, and adds a notice.
//
// The error joins all problems outside of accounts. Invalid accounts are not errors:
// they are in Config.RejectedAccounts. If Load returns an error, the Config is nil.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	return loadWithRoot("/", path, env)
}

// loadWithRoot is Load with another root for the default paths.
func loadWithRoot(root, path string, env func(string) (string, bool)) (*Config, error) {
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
	c, err = c.validate(env)
	if err == nil && !found {
		c.notices = append(c.notices, "no configuration file was found at /"+strings.Join(defaultPaths[:],
			", /")+": using the defaults, without accounts")
	}
	return c, err
}

func options(env func(string) (string, bool)) configfile.Options {
	return configfile.Options{Env: env, EnvPrefix: EnvPrefix}
}

// parse reads a configuration from data.
func parse(name string, data []byte, env func(string) (string, bool)) (*Config, error) {
	c := &Config{}
	o := c.withSecrets(options(env), func(o configfile.Options, into any) { configfile.Parse(name, data, o, into) })
	c.report = configfile.Parse(name, data, o, c)
	return c.validate(env)
}

// withSecrets adds to options that references to secrets are resolved. read reads the configuration.
func (c *Config) withSecrets(o configfile.Options, read func(o configfile.Options, into any)) configfile.Options {
	c.secrets = engines.NewLoader(o, read)
	c.secrets.Prefetch(&Config{})
	o.Secrets = c.secrets.Resolve
	return o
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
	if c.ZoneID == "" && env != nil {
		pod, _ := env("HOSTNAME")
		c.ZoneID = defaultZone(pod, namespaceFile)
	}
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
