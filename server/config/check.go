package config

import (
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/logging"
)

// check reports what is wrong with values that have the right type.
func (c *Config) check() {
	c.checkPort("server.port", c.Server.Port)
	c.checkPort("grpc.server.port", c.GRPC.Server.Port)
	c.checkREST(c.Server.SSL)
	c.checkGRPC(c.GRPC.Server.Security)
	c.checkAgents(c.Agents)
	c.checkFiat(c.Fiat)
	c.checkTasks(c.Tasks, c.Manifests)
	if _, err := logging.ParseLevel(c.Logging.Level); err != nil {
		c.problem("logging.level", "%q: %s", "logging.level", err)
	}
	if f := c.Logging.Format; !strings.EqualFold(f, logging.Text) && !strings.EqualFold(f, logging.JSON) {
		c.problem("logging.format", "%q must be text or json, and %q stands there", "logging.format", f)
	}
	if c.GRPC.Auth.X509.Enabled {
		c.problem("grpc.auth.x509.enabled", "%q is not supported: without it every certificate that grpc.server.security.trustCertCollection signed would get in, so the server does not start with it", "grpc.auth.x509.enabled")
	}
	if c.Spring.Config.Import != "" {
		c.problem("spring.config.import", "%q is not supported, and without that file its settings would be missing: put all into one file", "spring.config.import")
	}
}

func (c *Config) checkREST(s SSL) {
	if s.Enabled && s.CertFile == "" {
		c.problem("server.ssl.enabled", "%q is true, and %q is missing", "server.ssl.enabled", "server.ssl.certFile")
	}
	if !s.Enabled && s.CertFile != "" {
		c.notice("server.ssl.certFile", "server.ssl.certFile is set and server.ssl.enabled is not: the REST API is plain HTTP")
	}
	c.checkClientAuth(clientAuth{key: "server.ssl.clientAuth", word: s.ClientAuth,
		enabledKey: "server.ssl.enabled", enabled: s.Enabled, trustKey: "server.ssl.cacertFile", trust: s.CACertFile})
	c.checkFile("server.ssl.certFile", s.CertFile)
	c.checkFile("server.ssl.keyFile", s.KeyFile)
	c.checkFile("server.ssl.cacertFile", s.CACertFile)
}

func (c *Config) checkGRPC(s Security) {
	const at = "grpc.server.security."
	if s.Enabled && s.CertificateChain == "" {
		c.problem(at+"enabled", "%q is true, and %q is missing", at+"enabled", at+"certificateChain")
	}
	if s.Enabled && s.PrivateKey == "" {
		c.problem(at+"enabled", "%q is true, and %q is missing", at+"enabled", at+"privateKey")
	}
	c.checkFile(at+"certificateChain", s.CertificateChain)
	c.checkFile(at+"privateKey", s.PrivateKey)
	c.checkFile(at+"trustCertCollection", s.TrustCertCollection)
	c.checkProtocols(at+"protocols", s.Protocols)
	if !s.Enabled && s.CertificateChain != "" {
		c.notice(at+"certificateChain", "grpc.server.security.certificateChain is set and grpc.server.security.enabled is not: agents connect in plaintext")
	}
	c.checkClientAuth(clientAuth{key: at + "clientAuth", word: s.ClientAuth,
		enabledKey: at + "enabled", enabled: s.Enabled, trustKey: at + "trustCertCollection", trust: s.TrustCertCollection})
	c.checkOpenPort()
}

// checkOpenPort refuses to let anyone register accounts by oversight.
func (c *Config) checkOpenPort() {
	s, l := c.GRPC.Server, c.GRPCListen()
	if l.Warning == "" || s.AllowUnauthenticated {
		return
	}
	key := "grpc.server.address"
	if s.Address == "" {
		key = "grpc.server.security.enabled"
	}
	c.problem(key, "%q lets agents connect to %s from other machines, and nothing asks who they are. Set %q to REQUIRE with %q, "+
		"or, where the network keeps strangers from the port, %q to true; docs/securing.md says more",
		key, l.Address, "grpc.server.security.clientAuth", "grpc.server.security.trustCertCollection", "grpc.server.allowUnauthenticated")
}

func (c *Config) checkProtocols(key string, protocols []string) {
	for _, protocol := range protocols {
		switch strings.ToLower(protocol) {
		case "tlsv1.2", "tlsv1.3":
		case "tlsv1", "tlsv1.1":
			c.notice(key, fmt.Sprintf("%s is not safe and never accepted", protocol))
		default:
			c.problem(key, "%q must name TLSv1.2 or TLSv1.3, and %q stands there", key, protocol)
		}
	}
}

// checkFile refuses what only Spring could load.
func (c *Config) checkFile(key, file string) {
	if strings.HasPrefix(file, "classpath:") || strings.HasPrefix(file, "configserver:") {
		c.problem(key, "%q must be a path of a file, with or without file: before it", key)
	}
}

// clientAuth is what a port asks of its clients' certificates.
type clientAuth struct {
	key, word       string
	enabledKey      string
	enabled         bool
	trustKey, trust string
}

// checkClientAuth refuses what would let in more than it says.
func (c *Config) checkClientAuth(a clientAuth) {
	auth, err := keypair.ParseClientAuth(a.word)
	switch {
	case err != nil:
		c.problem(a.key, "%q: %s", a.key, err)
	case auth != tls.NoClientCert && !a.enabled:
		c.problem(a.key, "%q is %s, and %q is not true: without TLS no certificate is asked for", a.key, a.word, a.enabledKey)
	case auth == tls.NoClientCert && a.enabled && a.trust != "":
		c.notice(a.trustKey, fmt.Sprintf("%s is set and %s is not: clients are not asked for certificates", a.trustKey, a.key))
	case keypair.VerifiesClientCert(auth) && a.trust == "":
		c.problem(a.key, "%q is %s, and %q is missing: name the file with the authorities that sign the clients' certificates", a.key, a.word, a.trustKey)
	}
}

func (c *Config) checkAgents(a Agents) {
	if a.PulseSeconds < 1 || a.PulseSeconds > 300 {
		c.problem("agents.pulseSeconds", "%q must be from 1 to 300, and %d stands there", "agents.pulseSeconds", a.PulseSeconds)
	}
	if a.CreditBytes < 64<<10 || a.CreditBytes > 1<<30 {
		c.problem("agents.creditBytes", "%q must be from 64KiB to 1GiB, and %s stands there", "agents.creditBytes", a.CreditBytes)
	}
	if a.IngestBytes < a.CreditBytes {
		c.problem("agents.ingestBytes", "%q must not be below agents.creditBytes, and %s stands there", "agents.ingestBytes", a.IngestBytes)
	}
	if a.MemoryBytes != 0 && a.MemoryBytes < 80<<20 {
		c.problem("agents.memoryBytes", "%q must be 0 or at least 80MiB, which one large object may take, and %s stands there", "agents.memoryBytes", a.MemoryBytes)
	}
}

func (c *Config) checkPort(path string, port int) {
	if port < 0 || port > 65535 {
		c.problem(path, "%q must be a port from 0 to 65535, and %d stands there", path, port)
	}
}

// problem reports what is wrong with a setting.
func (c *Config) problem(path, format string, args ...any) {
	c.report.Add(c.report.PositionOf(path), path, format, args...)
}

// notice tells of a setting that is odd and no error.
func (c *Config) notice(path, text string) {
	c.notices = append(c.notices, fmt.Sprintf("%s: %s", c.report.PositionOf(path), text))
}
