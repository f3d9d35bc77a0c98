package config

import (
	"log/slog"
	"net"
	"strconv"

	"github.com/vedette-io/vedette/internal/admin"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/settings"
)

// Server configures the agent's HTTP port for health checks.
type Server struct {
	// Address to listen on. Empty for all addresses.
	Host string `config:"host"`
	// Port of /health, /health/liveness, /health/readiness and /ready, and of the paths for operators: /version,
	// /accounts, /operations, /watches and /config. These, and account names and errors in the others, are only for
	// requests from the loopback address, with a client certificate that server.ssl.cacertFile signed, or with the token.
	Port int `config:"port" format:"port" default:"8082"`
	// Token for operators on other machines, of at least 16 bytes: Authorization: Bearer TOKEN.
	AdminToken configfile.Secret `config:"adminToken"`
	// File with that token, instead of adminToken. The agent reads it for each request.
	AdminTokenFile string `config:"adminTokenFile"`
	// Security of the port.
	SSL settings.SSL `config:"ssl"`
}

// Guard returns who may use the paths for operators.
func (s Server) Guard(log *slog.Logger) admin.Guard {
	return admin.Guard{Token: s.AdminToken.Reveal(), TokenFile: s.AdminTokenFile, Log: log}
}

// ListenAddress returns the address of the agent's HTTP port.
func (s Server) ListenAddress() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// Prometheus configures the port for metrics.
type Prometheus struct {
	// Serve metrics for Prometheus on /metrics and /prometheus_metrics. They are numbers; no label names a
	// namespace or an object.
	Enabled bool `config:"enabled" default:"false"`
	// Port for metrics.
	Port int `config:"port" format:"port" default:"8008"`
	// Address to listen on. Empty for all addresses.
	Host string `config:"host"`
	// How many accounts have metrics of their own, with a label account: the first ones by name; 0 for none. Each
	// has eight series.
	MaxAccounts int `config:"maxAccounts" default:"0" minimum:"0" maximum:"20000"`
	// Security of the port for metrics.
	SSL settings.SSL `config:"ssl"`
}

// ListenAddress returns the address of the port for metrics.
func (p Prometheus) ListenAddress() string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Port)) }

// Pprof configures Go's profiles.
type Pprof struct {
	// Serve /debug/pprof on pprof.port and on server.port, for operators only.
	Enabled bool `config:"enabled" default:"false"`
	// Port for profiles. It is open on the loopback address only, unless there is a token for operators.
	Port int `config:"port" format:"port" default:"6060"`
}
