package config

import "github.com/vedette-io/vedette/internal/keypair"

// CertificateUses returns the certificates and authorities that the agent reads from files, and reads again.
func (c *Config) CertificateUses() []keypair.Use {
	var uses []keypair.Use
	if tls := c.Clouddriver.TLS; !c.Clouddriver.IsInsecure() && (tls.ClientCertFile != "" || tls.CACertFile != "") {
		uses = append(uses, keypair.Use{Name: "clouddriver.tls", KeyPair: tls.keyPairFiles(), CAFile: tls.CACertFile})
	}
	if use, ok := c.Server.SSL.Use("server.ssl"); ok {
		uses = append(uses, use)
	}
	if use, ok := c.Prometheus.SSL.Use("prometheus.ssl"); ok && c.Prometheus.Enabled {
		uses = append(uses, use)
	}
	if use, ok := c.Management.Server.SSL.Use("management.server.ssl"); ok && c.Management.IsEnabled() {
		uses = append(uses, use)
	}
	return uses
}
