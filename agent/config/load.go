package config

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
)

// EnvPrefix is what stands before a key's name in the environment:
// VEDETTE_AGENT_CLOUDDRIVER_GRPC sets clouddriver.grpc.
const EnvPrefix = "VEDETTE_AGENT_"

// defaultPaths are where a file is looked for, in this order: the predecessor's.
var defaultPaths = [...]string{
	"opt/armory/config/armory-agent.yaml",
	"opt/armory/config/armory-agent.yml",
	"opt/spinnaker/config/kubesvc.yaml",
	"opt/spinnaker/config/kubesvc.yml",
}

// Load reads the file at path. An empty path means the first of the default
// paths at which a file with something in it stands; without any, an agent with
// no accounts is configured, and a notice says so.
//
// The error joins all that is wrong outside of accounts. Wrong accounts are in
// Config.Refused, and the others work. Where there is an error there is no
// Config.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	return loadWithRoot("/", path, env)
}

// loadWithRoot is Load with another root for the default paths.
func loadWithRoot(root, path string, env func(string) (string, bool)) (*Config, error) {
	c := &Config{}
	var err error
	c.Path, c.report, err = configfile.LoadFirst(root, path, defaultPaths[:], options(env), c)
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

// parse configures from bytes.
func parse(name string, data []byte, env func(string) (string, bool)) (*Config, error) {
	c := &Config{}
	c.report = configfile.Parse(name, data, options(env), c)
	return c.validate(env)
}

// validate checks what was read and parts the good accounts from the bad.
func (c *Config) validate(env func(string) (string, bool)) (*Config, error) {
	c.check()
	c.checkAccounts()
	if problems := c.rejectInvalidAccounts(); len(problems) > 0 {
		err := configfile.Join(problems)
		return nil, vedette.Errorf(vedette.Invalid, "%w", err)
	}
	if c.ZoneID == "" && env != nil {
		pod, _ := env("HOSTNAME")
		c.ZoneID = defaultZone(pod, namespaceFile)
	}
	return c, c.setAgentID(env)
}

// setAgentID gives an agent without a name one. In a pod HOSTNAME is the pod's
// name, unless it uses the host's network: then agentId must be set where two
// agents may run on one node.
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
		return fmt.Errorf("ask for the host's name: %w", err)
	}
	var suffix [4]byte
	if _, err := rand.Read(suffix[:]); err != nil {
		return fmt.Errorf("make a random suffix: %w", err)
	}
	c.AgentID = vedette.AgentID(host + "-" + hex.EncodeToString(suffix[:]))
	return nil
}
