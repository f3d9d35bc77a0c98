package config

import "github.com/vedette-io/vedette/server/front50"

// Front50 is Spinnaker's store of applications and projects.
type Front50 struct {
	// URL of Front50, for example http://spin-front50:8080. Without it, Spinnaker's project dashboards show no clusters.
	BaseURL string `config:"baseUrl"`

	// baseUrl alone decides.
	Enabled bool `config:"enabled,ignored"`
	// baseUrl is used instead.
	Host string `config:"host,ignored"`
	// baseUrl is used instead.
	Port int `config:"port,ignored"`
	// The server has its own timeout.
	ConnectTimeoutMs int `config:"connectTimeoutMs,ignored"`
	// The server has its own timeout.
	ReadTimeoutMs int `config:"readTimeoutMs,ignored"`
}

// Client returns a client of Front50; nil if none is configured.
func (f Front50) Client() *front50.Client {
	if f.BaseURL == "" {
		return nil
	}
	return front50.New(front50.Config{BaseURL: f.BaseURL})
}

func (c *Config) checkFront50(f Front50) {
	if f.BaseURL == "" {
		if c.Cache.CheckApplicationInFront50 {
			c.addProblem("cache.checkApplicationInFront50", "%q is true, but %q is missing", "cache.checkApplicationInFront50",
				"services.front50.baseUrl")
		}
		return
	}
	if err := (&front50.Config{BaseURL: f.BaseURL}).Validate(); err != nil {
		c.addProblem("services.front50.baseUrl", "%q: %s", "services.front50.baseUrl", err)
	}
}
