package config

import (
	"crypto/tls"
	"net"
	"strconv"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/keypair"
)

// Server configures the agent's HTTP port for health checks.
type Server struct {
	// Address to listen on. Empty for all addresses.
	Host string `config:"host"`
	// Port of /health, /health/liveness and /health/readiness. Answers contain account names and errors only for
	// requests from the loopback address or with a client certificate that server.ssl.cacertFile signed.
	Port int `config:"port" default:"8082"`
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

// Pprof configures the port for Go's profiles.
type Pprof struct {
	// Serve /debug/pprof, on the loopback address only.
	Enabled bool `config:"enabled" default:"false"`
	// Port for profiles.
	Port int `config:"port" default:"6060"`
}

// Logging configures the log. Lines go to standard output.
type Logging struct {
	// Lowest level to log: trace, debug, info, warn, error, fatal or panic, ignoring case.
	Level string `config:"level" default:"info" env:"LOG_LEVEL"`
	// text or json.
	Format string `config:"format" default:"text"`
	// File to log to.
	File string `config:"file,planned,warn" default:"stdout"`
	// Log to standard output in addition to the file.
	MultiWrite bool `config:"multiWrite,planned" default:"false"`
	// Size at which a new file is started, in MB.
	MaxSizeMB int `config:"maxSizeMb,planned" default:"1"`
	// Time for which old files are kept, in days.
	MaxAgeDays int `config:"maxAgeDays,planned" default:"10"`
	// Number of old files that are kept.
	MaxBackups int `config:"maxBackups,planned" default:"10"`
	// Use local time in log lines.
	LocalTime bool `config:"localTime,planned" default:"true"`
	// Compress old files.
	Compress bool `config:"compress,planned" default:"false"`
	// Attributes to add to each line.
	Fields map[string]string `config:"fields,planned,warn"`
	// Sent log lines to the vendor of the predecessor.
	Remote configfile.Ignored `config:"remote,ignored"`
}
