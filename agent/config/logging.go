package config

import (
	"maps"
	"os"
	"strings"

	"github.com/vedette-io/vedette/internal/logging"
)

// LogConfig returns the configuration of the log. env looks up environment variables.
func (c *Config) LogConfig(env func(string) (string, bool)) logging.Config {
	log := c.Logging.Config
	log.Fields = withOwnFields(log.Fields, env, namespaceFile)
	if _, isSet := log.Fields["agentId"]; logging.IsScaleAgent(log.Format) && !isSet {
		log.Fields = maps.Clone(log.Fields)
		if log.Fields == nil {
			log.Fields = map[string]string{}
		}
		log.Fields["agentId"] = string(c.AgentID) // as the Scale Agent did
	}
	return log
}

// LogLevel returns the lowest level to log.
func (c *Config) LogLevel() string { return c.Logging.Level }

// withOwnFields adds the values that the agent knows itself.
func withOwnFields(fields map[string]string, env func(string) (string, bool), namespaceFile string) map[string]string {
	fields = maps.Clone(fields)
	if value, ok := fields["agentCluster"]; ok && value == "" {
		fields["agentCluster"] = firstVariable(env, "KUBERNETES_SERVICE_NAME", "KUBERNETES_SERVICE_HOST")
	}
	if value, ok := fields["agentNamespace"]; ok && value == "" {
		namespace, err := os.ReadFile(namespaceFile)
		if err == nil { // otherwise the agent does not run in a pod
			fields["agentNamespace"] = strings.TrimSpace(string(namespace))
		}
	}
	return fields
}

// firstVariable returns the first environment variable that is set and not empty.
func firstVariable(env func(string) (string, bool), names ...string) string {
	for _, name := range names {
		if value, ok := env(name); ok && value != "" {
			return value
		}
	}
	return ""
}
