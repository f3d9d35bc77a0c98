package config

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/settings"
)

// Server configures the REST API.
type Server struct {
	// Name of this server, which no other one with the same database has. Default: the host name, which is the name of its pod.
	ID string `config:"id"`
	// Other servers that share the database.
	Peers Peers `config:"peers"`
	// Port of the REST API.
	Port int `config:"port" format:"port" default:"7002"`
	// Address to listen on; * for all. Default: all addresses if server.ssl.enabled is true, otherwise the loopback address.
	Address string `config:"address"`
	// Host names under which clients may call a server that listens on a loopback address, for example those of
	// a proxy on the same machine. IP addresses and localhost always work. Other names are rejected, because a
	// web page could use them (DNS rebinding).
	Hosts []string `config:"hosts"`
	// Token for operators on other machines, of at least 16 bytes: Authorization: Bearer TOKEN. It opens pprof.port and /config.
	AdminToken configfile.Secret `config:"adminToken"`
	// File with that token, instead of adminToken. The server reads it for each request.
	AdminTokenFile string `config:"adminTokenFile"`
	// Services that send requests of many users, such as Gate: addresses, networks like 10.1.2.0/24, or names
	// in verified client certificates. Limits then count each user in X-SPINNAKER-USER as a client of its own. Name
	// nothing that users can reach the server from. The history of operations believes these services about their users.
	// Addresses and networks count for requests without a client certificate: name services that have one by their certificates.
	// Otherwise all users of an address or certificate share one client's limits.
	TrustedCallers []string `config:"trustedCallers"`
	// Memory for all answers to readers. One client may use half of it. A request that gets none within 10 seconds fails with status 503.
	ReadBytes int64 `config:"readBytes" format:"bytes" default:"64MiB"`
	// Security of the REST API.
	SSL settings.SSL `config:"ssl"`
}

// GRPC configures the port to which agents connect.
type GRPC struct {
	// Port for agents.
	Server GRPCServer `config:"server"`
	// Agents that may connect.
	Auth GRPCAuth `config:"auth"`
}

// GRPCServer configures the port for agents.
type GRPCServer struct {
	// Port for agents.
	Port int `config:"port" format:"port" default:"9091"`
	// Address to listen on; * for all. Default: all addresses if grpc.server.security.enabled is true, otherwise the loopback address.
	Address string `config:"address"`
	// Let agents connect from other machines without a certificate. Anyone who can reach the port can then
	// register accounts. If false, the server does not start with such a port.
	AllowUnauthenticated bool `config:"allowUnauthenticated" default:"false"`
	// Security of the port for agents. Files may be written as file:/path.
	Security Security `config:"security"`
	// gRPC's health service is always served.
	HealthServiceEnabled bool `config:"healthServiceEnabled,ignored" default:"true"`
	// Agents split large messages; no limit needs to be raised.
	MaxInboundMessageSize configfile.Bytes `config:"maxInboundMessageSize,ignored" default:"4MB"`
}

// Security configures TLS of the port for agents. File names may have the prefix file:.
type Security struct {
	// Use TLS.
	Enabled bool `config:"enabled" default:"false"`
	// PEM file with the certificate and its intermediates. The server reads it again when it changes.
	CertificateChain string `config:"certificateChain"`
	// PEM file with the private key: PKCS#8, PKCS#1 or EC.
	PrivateKey string `config:"privateKey"`
	// Password of the private key, if it is encrypted PKCS#8.
	PrivateKeyPassword configfile.Secret `config:"privateKeyPassword"`
	// Certificates of agents: NONE, OPTIONAL (verify one if it is sent) or REQUIRE. OPTIONAL and REQUIRE need trustCertCollection.
	ClientAuth string `config:"clientAuth" default:"NONE"`
	// PEM file with the certificate authorities of agents. The server reads it again when it changes.
	TrustCertCollection string `config:"trustCertCollection"`
	// TLS versions to accept: TLSv1.2 and TLSv1.3. Older versions are never accepted.
	Protocols []string `config:"protocols"`
	// Go chooses the cipher suites; none of them is known to be weak.
	Ciphers []string `config:"ciphers,ignored,warn"`
	// agents.heartbeatSeconds is used instead.
	KeepAliveHeartbeatSeconds int `config:"keepAliveHeartbeatSeconds,ignored"`
	// Three missed heartbeats end a connection.
	KeepAliveTimeOutSeconds int `config:"keepAliveTimeOutSeconds,ignored"`
}

// GRPCAuth decides which agents may connect.
type GRPCAuth struct {
	X509 X509 `config:"x509"`
}

// ListenAddress is an address to listen on, with remarks about it.
type ListenAddress struct {
	Address string // for example "127.0.0.1:9091"
	Notice  string // set if only this machine can connect because of a default; says how to change it
	Warning string // set if clients can connect without authentication
}

// GRPCListen returns the address for agents.
func (c *Config) GRPCListen() ListenAddress {
	s := c.GRPC.Server
	l := listen(s.Address, s.Port, s.Security.Enabled, "grpc.server.address", "grpc.server.security.enabled")
	if !l.isLoopback() && !s.Security.authenticates() {
		l.Warning = fmt.Sprintf("agents on %s are not authenticated: every client that can reach the port may register accounts and receives what is deployed to them. "+
			"Set grpc.server.security.clientAuth to REQUIRE (see docs/securing.md)", l.Address)
	}
	return l
}

// RESTListen returns the address of the REST API.
func (c *Config) RESTListen() ListenAddress {
	s := c.Server
	l := listen(s.Address, s.Port, s.SSL.Enabled, "server.address", "server.ssl.enabled")
	if !l.isLoopback() && !s.SSL.Authenticates() {
		l.Warning = fmt.Sprintf("callers of the REST API on %s are not authenticated: every client that can reach the port may read all accounts, and change them by naming a user and accounts in headers. "+
			"Allow only Spinnaker's services to reach the port, or set server.ssl.clientAuth to need (see docs/securing.md)", l.Address)
	}
	return l
}

// isLoopback reports whether only this machine can connect.
func (l ListenAddress) isLoopback() bool {
	host, _, err := net.SplitHostPort(l.Address)
	return err == nil && (strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback())
}

// authenticates reports whether every client must present a valid certificate.
func (s Security) authenticates() bool {
	auth, err := keypair.ParseClientAuth(s.ClientAuth)
	return err == nil && s.Enabled && auth == tls.RequireAndVerifyClientCert
}

// listen chooses the address. Without TLS and without a configured address only this machine can
// connect, so that the default is safe.
func listen(address string, port int, isTLS bool, addressKey, securityKey string) ListenAddress {
	switch {
	case address == "" && !isTLS:
		loopback := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		return ListenAddress{Address: loopback,
			Notice: fmt.Sprintf("listening on %s only: to let other machines connect, set %s (\"*\" for all addresses) or %s", loopback, addressKey,
				securityKey)}
	case address == "*":
		address = ""
	}
	return ListenAddress{Address: net.JoinHostPort(strings.Trim(address, "[]"), strconv.Itoa(port))}
}

// tlsConfig returns the TLS configuration of the port for agents without the rules about subjects, or
// nil for plaintext.
func (s GRPCServer) tlsConfig() (*tls.Config, error) {
	if !s.Security.Enabled {
		return nil, nil
	}
	auth, err := keypair.ParseClientAuth(s.Security.ClientAuth)
	if err != nil {
		return nil, err
	}
	return keypair.ServerTLS{
		KeyPair:    s.Security.keyPair(),
		ClientAuth: auth,
		CAFile:     settings.FilePath(s.Security.TrustCertCollection),
		MinVersion: s.Security.minVersion(),
	}.TLSConfig()
}

func (s Security) keyPair() keypair.Files {
	return keypair.Files{Cert: settings.FilePath(s.CertificateChain), Key: settings.FilePath(s.PrivateKey),
		Password: s.PrivateKeyPassword.Reveal()}
}

// minVersion returns TLS 1.3, unless the user lists TLS 1.2.
func (s Security) minVersion() uint16 {
	older := func(p string) bool { return !strings.EqualFold(p, "TLSv1.3") }
	if len(s.Protocols) > 0 && !slices.ContainsFunc(s.Protocols, older) {
		return tls.VersionTLS13
	}
	return tls.VersionTLS12
}
