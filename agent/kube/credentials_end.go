package kube

import "github.com/vedette-io/vedette/agent/kube/credentials"

// CredentialsEnd returns what ends first of the credentials that the cluster uses now. Those of exec plugins and clouds are
// renewed when they end, so these say nothing.
func (c *Cluster) CredentialsEnd() credentials.End {
	cfg := c.usedAccess().cfg
	token := cfg.BearerToken
	if cfg.BearerTokenFile != "" {
		content, _ := readNamedFile(cfg.BearerTokenFile) // client-go reads it again and again, and requests report its errors
		token = string(content)
	}
	return credentials.FirstEnd(cfg.CertData, token)
}
