package config

import (
	"crypto/tls"
	"net"
	"strconv"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/keypair"
)

// Server is the agent's own HTTP port, for health checks and a look inside.
type Server struct {
	// Address to listen on; empty for all.
	Host string `config:"host"`
	// Port of /health, /health/liveness and /health/readiness. Answers include account names and errors only for requests from the loopback address, or with a client certificate that server.ssl.cacertFile signed.
	Port int `config:"port" default:"8082"`
	SSL  SSL `config:"ssl"`
}

// SSL secures the agent's HTTP port.
type SSL struct {
	// Serve HTTPS.
	Enabled bool `config:"enabled" default:"false"`
	// PEM file with the certificate and its intermediates. It is read again when it changes.
	CertFile string `config:"certFile"`
	// PEM file with the key; by default the key stands in certFile.
	KeyFile string `config:"keyFile"`
	// Password of the key, where it is encrypted PKCS#8.
	KeyPassword configfile.Secret `config:"keyPassword,alias=keyFilePassword"`
	// PEM file with those who sign client certificates.
	CACertFile string `config:"cacertFile"`
	// Client certificates: none, request (ask), any (insist on one, whoever signed it), want (check one that comes), need (insist on a good one).
	ClientAuth string `config:"clientAuth" default:"none"`
}

// ListenAddress is the address of the agent's HTTP port.
func (s Server) ListenAddress() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// TLSConfig makes the TLS configuration of the agent's HTTP port; nil where it
// is plain HTTP.
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

// Prometheus is where metrics are served.
type Prometheus struct {
	// Serve /metrics and /prometheus_metrics.
	Enabled bool `config:"enabled" default:"false"`
	// Port to serve them on.
	Port int `config:"port" default:"8008"`
}

// Pprof is where Go's profiles are served.
type Pprof struct {
	// Serve /debug/pprof, on the loopback address only.
	Enabled bool `config:"enabled" default:"false"`
	// Port to serve them on.
	Port int `config:"port" default:"6060"`
}

// Logging is what is logged, and how. Lines go to standard output.
type Logging struct {
	// Least severe level to log: trace, debug, info, warn, error, fatal or panic, in any case.
	Level string `config:"level" default:"info" env:"LOG_LEVEL"`
	// text or json.
	Format string `config:"format" default:"text"`
	// File to log to.
	File string `config:"file,unused"`
	// Log to standard output as well as to the file.
	MultiWrite bool `config:"multiWrite,unused" default:"false"`
	// Size in MB at which a new file is begun.
	MaxSizeMB int `config:"maxSizeMb,unused" default:"1"`
	// Days that old files are kept.
	MaxAgeDays int `config:"maxAgeDays,unused" default:"10"`
	// Old files that are kept.
	MaxBackups int `config:"maxBackups,unused" default:"10"`
	// Stamp lines with local time.
	LocalTime bool `config:"localTime,unused" default:"true"`
	// Compress old files.
	Compress bool `config:"compress,unused" default:"false"`
	// Pairs to add to each line.
	Fields map[string]string `config:"fields,unused"`
	// Sending of log lines to the predecessor's maker.
	Remote configfile.Ignored `config:"remote,unused"`
}
