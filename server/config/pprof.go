package config

import (
	"crypto/tls"
	"log/slog"
	"net"

	"github.com/vedette-io/vedette/internal/admin"
)

// Pprof configures Go's profiles.
type Pprof struct {
	// Serve /debug/pprof, for operators only.
	Enabled bool `config:"enabled" default:"false"`
	// Port for profiles. It is open on the loopback address only, unless there is a token for operators; then it
	// is open on the addresses of the REST API, with its certificate.
	Port int `config:"port" format:"port" default:"6060"`
}

// Guard returns who may see profiles.
func (s Server) Guard(log *slog.Logger) admin.Guard {
	return admin.Guard{Token: s.AdminToken.Reveal(), TokenFile: s.AdminTokenFile, Log: log}
}

// Profiles returns the configuration of the port for profiles. tlsConfig is that of the REST API.
func (c *Config) Profiles(tlsConfig *tls.Config, log *slog.Logger) admin.Profiles {
	host, _, _ := net.SplitHostPort(c.RESTListen().Address) // RESTListen has joined them
	return admin.Profiles{Host: host, Port: c.Pprof.Port, TLS: tlsConfig, Guard: c.Server.Guard(log)}
}
