package config

import (
	"crypto/tls"
	"log/slog"
	"net"
	"strconv"

	"github.com/vedette-io/vedette/internal/admin"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/keypair"
)

// Server configures the agent's HTTP port for health checks.
type Server struct {
	// Address to listen on. Empty for all addresses.
	Host string `config:"host"`
	// Port of /health, /health/liveness, /health/readiness and /ready, and of the paths for operators: /version,
	// /accounts, /operations, /watches and /config. These, and account names and errors in the others, are only for
	// requests from the loopback address, with a client certificate that server.ssl.cacertFile signed, or with the token.
	Port int `config:"port" default:"8082"`
	// Token for operators on other machines, of at least 16 bytes: Authorization: Bearer TOKEN.
	AdminToken configfile.Secret `config:"adminToken"`
	// File with that token, instead of adminToken. The agent reads it for each request.
	AdminTokenFile string `config:"adminTokenFile"`
	// Security of the port.
	SSL SSL `config:"ssl"`
}

// SSL secures the agent's HTTP port.
type SSL struct {
	// Serve HTTPS.
	Enabled bool `config:"enabled" default:"false"`
	// PEM file with the certificate and its intermediates. The agent reads it again when it changes.
	CertFile string `config:"certFile"`
	// PEM file with the private key. Default: the key is in certFile.
	KeyFile string `config:"keyFile"`
	// Password of the private key, if it is encrypted PKCS#8.
	KeyPassword configfile.Secret `config:"keyPassword,alias=keyFilePassword"`
	// PEM file with the certificate authorities of client certificates.
	CACertFile string `config:"cacertFile"`
	// Client certificates: none, request (ask for one), any (require one, without verification), want (verify
	// one if it is sent), need (require and verify).
	ClientAuth string `config:"clientAuth" default:"none"`
}

// Guard returns who may use the paths for operators.
func (s Server) Guard(log *slog.Logger) admin.Guard {
	return admin.Guard{Token: s.AdminToken.Reveal(), TokenFile: s.AdminTokenFile, Log: log}
}

// ListenAddress returns the address of the agent's HTTP port.
func (s Server) ListenAddress() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// TLSConfig returns the TLS configuration of the agent's HTTP port, or nil for plain
// HTTP.
func (s Server) TLSConfig() (*tls.Config, error) {
	if !s.SSL.Enabled {
		return nil, nil
	}
	auth, err := keypair.ParseClientAuth(s.SSL.ClientAuth)
	if err != nil {
		return nil, err
	}
	return keypair.ServerTLS{
		KeyPair:    keypair.Files{Cert: s.SSL.CertFile, Key: s.SSL.KeyFile, Password: s.SSL.KeyPassword.Reveal()},
		ClientAuth: auth,
		CAFile:     s.SSL.CACertFile,
	}.TLSConfig()
}

// Prometheus configures the port for metrics.
type Prometheus struct {
	// Serve metrics for Prometheus on /metrics and /prometheus_metrics, without TLS. They are numbers; no label
	// names an account, a namespace or an object.
	Enabled bool `config:"enabled" default:"false"`
	// Port for metrics.
	Port int `config:"port" default:"8008"`
	// Address to listen on. Empty for all addresses.
	Host string `config:"host"`
}

// ListenAddress returns the address of the port for metrics.
func (p Prometheus) ListenAddress() string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Port)) }

// Pprof configures Go's profiles.
type Pprof struct {
	// Serve /debug/pprof on pprof.port and on server.port, for operators only.
	Enabled bool `config:"enabled" default:"false"`
	// Port for profiles. It is open on the loopback address only, unless there is a token for operators.
	Port int `config:"port" default:"6060"`
}
