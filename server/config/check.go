package config

import (
	"fmt"
	"strings"

	"github.com/vedette-io/vedette/internal/settings"
)

// validate checks values whose types are right already.
func (c *Config) validate() {
	c.checkPort("server.port", c.Server.Port)
	c.checkPort("grpc.server.port", c.GRPC.Server.Port)
	c.checkPort("prometheus.port", c.Prometheus.Port)
	c.checkPortsDiffer()
	c.Server.SSL.Check("server.ssl", c.keyStoreHint(), c.reporter())
	c.checkGRPC(c.GRPC.Server.Security)
	c.checkX509(c.GRPC.Auth.X509)
	c.checkAgents(c.Agents)
	c.checkFiat(c.Fiat)
	c.checkFront50(c.Front50)
	c.checkUpstream(c.Upstream)
	c.checkTasks(c.Tasks, c.Manifests)
	c.checkHistory(c.History)
	c.checkOperations(c.Kubesvc.Operations)
	c.checkCache(c.Cache)
	c.checkArtifacts(c.Artifacts)
	c.checkArtifactStore(c.ArtifactStore)
	c.Logging.Check(c.addProblem)
	c.checkPrometheus(c.Prometheus)
	c.checkPprof()
	c.checkTracing(c.Tracing)
}

// reporter adds problems and notices to the configuration.
func (c *Config) reporter() settings.Reporter {
	return settings.Reporter{Problem: c.addProblem, Notice: c.addNotice}
}

func (c *Config) checkGRPC(s Security) {
	const prefix = "grpc.server.security."
	if s.Enabled && s.CertificateChain == "" {
		c.addProblem(prefix+"enabled", "%q is true, but %q is missing", prefix+"enabled", prefix+"certificateChain")
	}
	if s.Enabled && s.PrivateKey == "" {
		c.addProblem(prefix+"enabled", "%q is true, but %q is missing", prefix+"enabled", prefix+"privateKey")
	}
	c.checkFile(prefix+"certificateChain", s.CertificateChain)
	c.checkFile(prefix+"privateKey", s.PrivateKey)
	c.checkFile(prefix+"trustCertCollection", s.TrustCertCollection)
	c.checkProtocols(prefix+"protocols", s.Protocols)
	if !s.Enabled && s.CertificateChain != "" {
		c.addNotice(prefix+"certificateChain",
			"grpc.server.security.certificateChain is set, but grpc.server.security.enabled is not true: agents connect in plaintext")
	}
	settings.ClientAuth{Key: prefix + "clientAuth", Value: s.ClientAuth, EnabledKey: prefix + "enabled", Enabled: s.Enabled,
		TrustKey: prefix + "trustCertCollection", Trust: s.TrustCertCollection}.Check(c.reporter())
	c.checkOpenPort()
}

// checkOpenPort rejects a configuration in which any client may register accounts, unless the user
// has asked for it.
func (c *Config) checkOpenPort() {
	s, l := c.GRPC.Server, c.GRPCListen()
	if l.Warning == "" || s.AllowUnauthenticated {
		return
	}
	key := "grpc.server.address"
	if s.Address == "" {
		key = "grpc.server.security.enabled"
	}
	c.addProblem(key, "%q lets agents connect to %s from other machines without authentication: set %q to REQUIRE and %q to the agents' authorities, "+
		"or set %q to true if the network protects the port (see docs/securing.md)",
		key, l.Address, "grpc.server.security.clientAuth", "grpc.server.security.trustCertCollection", "grpc.server.allowUnauthenticated")
}

func (c *Config) checkProtocols(key string, protocols []string) {
	for _, protocol := range protocols {
		switch strings.ToLower(protocol) {
		case "tlsv1.2", "tlsv1.3":
		case "tlsv1", "tlsv1.1":
			c.addNotice(key, fmt.Sprintf("%s is insecure and is not accepted", protocol))
		default:
			c.addProblem(key, "%q must name TLSv1.2 or TLSv1.3, got %q", key, protocol)
		}
	}
}

// checkFile rejects locations that only Spring can load.
func (c *Config) checkFile(key, file string) { settings.CheckFile(key, file, c.reporter()) }

func (c *Config) checkAgents(a Agents) {
	if a.HeartbeatSeconds < 1 || a.HeartbeatSeconds > 300 {
		c.addProblem("agents.pulseSeconds", "%q must be from 1 to 300, got %d", "agents.pulseSeconds", a.HeartbeatSeconds)
	}
	if a.CreditBytes < 64<<10 || a.CreditBytes > 1<<30 {
		c.addProblem("agents.creditBytes", "%q must be from 64KiB to 1GiB, got %s", "agents.creditBytes", a.CreditBytes)
	}
	if a.IngestBytes < a.CreditBytes {
		c.addProblem("agents.ingestBytes", "%q must be at least agents.creditBytes, got %s", "agents.ingestBytes", a.IngestBytes)
	}
	if a.MemoryBytes != 0 && a.MemoryBytes < 80<<20 {
		c.addProblem("agents.memoryBytes", "%q must be 0, or at least 80MiB because one large object may take that much, got %s",
			"agents.memoryBytes", a.MemoryBytes)
	}
}

func (c *Config) checkCache(cache Cache) {
	if cache.All && len(cache.OmitKinds) > 0 {
		c.addProblem("cache.omitKinds", "%q cannot be combined with %q: set omitKinds of the accounts, or cache.kinds", "cache.omitKinds", "cache.all")
	}
}

func (c *Config) checkPort(path string, port int) {
	if port < 0 || port > 65535 {
		c.addProblem(path, "%q must be a port from 0 to 65535, got %d", path, port)
	}
}

// keyStoreHint says what to do with the keystore of a file that was copied from Clouddriver.
func (c *Config) keyStoreHint() string {
	if !c.Report.HasUnknownKey("server.ssl.keyStore") {
		return ""
	}
	return ": server.ssl.keyStore cannot be read, because only Java reads keystores: convert it to PEM with openssl pkcs12"
}

// addProblem adds an error about a setting.
func (c *Config) addProblem(path, format string, args ...any) {
	c.Report.Add(c.Report.PositionOf(path), path, format, args...)
}

// addNotice adds a notice about a setting that is valid but unusual.
func (c *Config) addNotice(path, text string) {
	c.notices = append(c.notices, fmt.Sprintf("%s: %s", c.Report.PositionOf(path), text))
}
