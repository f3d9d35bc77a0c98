package config

import (
	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/settings"
)

// CertificateUses returns the certificates and authorities that the server reads from files, and reads again.
func (c *Config) CertificateUses() []keypair.Use {
	var uses []keypair.Use
	if use, ok := c.Server.SSL.Use("server.ssl"); ok {
		uses = append(uses, use)
	}
	if s := c.GRPC.Server.Security; s.Enabled {
		uses = append(uses, keypair.Use{Name: "grpc.server.security", KeyPair: s.keyPair(), CAFile: settings.FilePath(s.TrustCertCollection)})
	}
	if use, ok := c.Prometheus.SSL.Use("prometheus.ssl"); ok && c.Prometheus.Enabled {
		uses = append(uses, use)
	}
	if use, ok := c.Management.Server.SSL.Use("management.server.ssl"); ok && c.Management.IsEnabled() {
		uses = append(uses, use)
	}
	if tls := c.Upstream.SSL.clientTLS(); c.Upstream.BaseURL != "" && (tls.KeyPair.Cert != "" || tls.CAFile != "") {
		uses = append(uses, keypair.Use{Name: "upstream.ssl", KeyPair: tls.KeyPair, CAFile: tls.CAFile})
	}
	return uses
}
