package config

import (
	"net/url"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/front50"
)

// Front50 is Spinnaker's store of applications and projects.
type Front50 struct {
	front50.Config

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
	return front50.New(f.Config)
}

func (f Front50) check(c configfile.Checker, checkApplications bool) {
	if f.BaseURL == "" && checkApplications {
		c.Problem("cache.checkApplicationInFront50", " is true, but %q is missing", "services.front50.baseUrl")
	}
	if f.BaseURL == "" {
		return
	}
	if err := f.Validate(); err != nil {
		c.Problem("services.front50.baseUrl", ": %s", err)
	}
}

// url returns the address, or nil if there is none. The address is valid, see validate.
func (f Front50) url() *url.URL {
	if f.BaseURL == "" {
		return nil
	}
	base, err := url.Parse(f.BaseURL)
	if err != nil {
		return nil
	}
	return base
}
