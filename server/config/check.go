package config

import (
	"net/netip"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/settings"
)

// validate checks what the tags of the settings do not say.
func (c *Config) validate() {
	all := c.Report.Checker()
	c.Management.Check(c.Server.Port, all.At("management"))
	c.checkPortsDiffer()
	c.Server.SSL.Check(settings.KeyStoreHint(c.Report), all.At("server.ssl"))
	c.GRPC.Server.Security.check(all.At("grpc.server.security"))
	c.checkOpenPort(all)
	c.checkX509(all.At("grpc.auth.x509"))
	c.checkTrustedCallers(all)
	c.Agents.check(all.At("agents"))
	c.Fiat.check(all.At("services.fiat"))
	c.Front50.check(all, c.Cache.CheckApplicationInFront50)
	c.Upstream.check(all.At("upstream"))
	c.Manifests.check(all.At("manifests"))
	c.History.check(all.At("history"))
	c.Cache.check(all)
	c.Secrets.Check(all.At("secrets"))
	c.Artifacts.Check(all.At("artifacts"))
	c.ArtifactStore.Check(all.At("artifact-store"))
	c.Logging.Check(all.At("logging"))
	c.Prometheus.SSL.Check("", all.At("prometheus.ssl"))
	if err := c.Server.Guard(nil).Check(); err != nil {
		all.Problem("server.adminToken", ": %s", err)
	}
	c.Tracing.Check(all.At("tracing"))
	c.Kubesvc.check(all.At("kubesvc"))
}

func (s Security) check(c configfile.Checker) {
	if s.Enabled && s.CertificateChain == "" {
		c.Problem("enabled", " is true, but %q is missing", c.Path("certificateChain"))
	}
	if s.Enabled && s.PrivateKey == "" {
		c.Problem("enabled", " is true, but %q is missing", c.Path("privateKey"))
	}
	settings.CheckFile("certificateChain", s.CertificateChain, c)
	settings.CheckFile("privateKey", s.PrivateKey, c)
	settings.CheckFile("trustCertCollection", s.TrustCertCollection, c)
	for _, protocol := range s.Protocols {
		switch strings.ToLower(protocol) {
		case "tlsv1.2", "tlsv1.3":
		case "tlsv1", "tlsv1.1":
			c.Notice("protocols", "%s is insecure and is not accepted", protocol)
		default:
			c.Problem("protocols", " must name TLSv1.2 or TLSv1.3, got %q", protocol)
		}
	}
	if !s.Enabled && s.CertificateChain != "" {
		c.Notice("certificateChain",
			"grpc.server.security.certificateChain is set, but grpc.server.security.enabled is not true: agents connect in plaintext")
	}
	settings.ClientAuth{Value: s.ClientAuth, Enabled: s.Enabled, TrustKey: "trustCertCollection", Trust: s.TrustCertCollection}.Check(c)
}

// checkTrustedCallers notes addresses without effect: if each request has a certificate, only the certificate identifies the caller.
func (c *Config) checkTrustedCallers(all configfile.Checker) {
	if !c.Server.SSL.Authenticates() {
		return
	}
	for _, caller := range c.Server.TrustedCallers {
		_, addressErr := netip.ParseAddr(caller)
		_, networkErr := netip.ParsePrefix(caller)
		if addressErr == nil || networkErr == nil {
			all.Notice("server.trustedCallers", "server.trustedCallers has %s, which has no effect, because server.ssl.clientAuth is need: "+
				"name services by their certificates", caller)
		}
	}
}

// checkOpenPort rejects a configuration in which any client may register accounts, unless the user
// has asked for it.
func (c *Config) checkOpenPort(all configfile.Checker) {
	s, l := c.GRPC.Server, c.GRPCListen()
	if l.Warning == "" || s.AllowUnauthenticated {
		return
	}
	key := "grpc.server.address"
	if s.Address == "" {
		key = "grpc.server.security.enabled"
	}
	all.Problem(key, " lets agents connect to %s from other machines without authentication: set %q to REQUIRE and %q to the agents' authorities, "+
		"or set %q to true if the network protects the port (see docs/securing.md)", l.Address, "grpc.server.security.clientAuth", "grpc.server.security.trustCertCollection", "grpc.server.allowUnauthenticated")
}

func (s Cache) check(all configfile.Checker) {
	if s.All && len(s.OmitKinds) > 0 {
		all.Problem("cache.omitKinds", " cannot be combined with %q: set omitKinds of the accounts, or cache.kinds", "cache.all")
	}
}
