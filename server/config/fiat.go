package config

import (
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/authorize"
)

// Fiat is Spinnaker's service for users' permissions.
type Fiat struct {
	// Ask Fiat for the permissions of each user. If false, everyone may read, and an account with permissions
	// accepts changes only from requests that name it in X-SPINNAKER-ACCOUNTS.
	Enabled bool `config:"enabled" default:"false"`
	authorize.FiatConfig

	// baseUrl is used instead.
	Host string `config:"host,ignored"`
	// baseUrl is used instead.
	Port int `config:"port,ignored"`
	// A new address needs a restart.
	Refreshable bool `config:"refreshable,ignored"`
	// services.fiat.retry limits the time instead.
	ConnectTimeoutMs int `config:"connectTimeoutMs,ignored"`
	// services.fiat.retry limits the time instead.
	ReadTimeoutMs int `config:"readTimeoutMs,ignored"`
	// Belongs to Spring Security, which the server does not use.
	GrantedAuthorities configfile.Ignored `config:"grantedAuthorities,ignored"`
}

func (f Fiat) check(c configfile.Checker) {
	switch {
	case f.Enabled && f.BaseURL == "":
		c.Problem("enabled", " is true, but %q is missing", c.Path("baseUrl"))
	case f.Enabled:
		if err := f.Validate(); err != nil {
			c.Problem("baseUrl", ": %s", err)
		}
	case f.BaseURL != "":
		c.Notice("baseUrl", "services.fiat.baseUrl is set, but services.fiat.enabled is not true: everyone may read, and only the header X-SPINNAKER-ACCOUNTS protects accounts with permissions")
	}
}
