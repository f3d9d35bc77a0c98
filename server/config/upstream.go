package config

import (
	"net/url"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/settings"
	"github.com/vedette-io/vedette/server/upstream"
)

// Upstream is an existing Clouddriver behind this server. The server answers for accounts of agents, and passes
// on or merges the rest.
type Upstream struct {
	upstream.Config
	// TLS, for a URL with https.
	SSL UpstreamSSL `config:"ssl"`
}

// UpstreamSSL configures TLS to the existing Clouddriver.
type UpstreamSSL struct {
	// PEM file with the certificate authorities, read at start. Default: those of the system.
	CACertFile string `config:"cacertFile"`
	// PEM file with a client certificate and its intermediates. It is read again when it changes.
	CertFile string `config:"certFile"`
	// PEM file with the private key: PKCS#8, PKCS#1 or EC. Default: the key is in certFile.
	KeyFile string `config:"keyFile"`
	// Password of the private key, if it is encrypted PKCS#8.
	KeyPassword configfile.Secret `config:"keyPassword,alias=keyFilePassword"`
}

func (s UpstreamSSL) clientTLS() keypair.ClientTLS {
	return keypair.ClientTLS{CAFile: settings.FilePath(s.CACertFile),
		KeyPair: keypair.Files{Cert: settings.FilePath(s.CertFile), Key: settings.FilePath(s.KeyFile), Password: s.KeyPassword.Reveal()}}
}

// IsEnabled reports whether there is an existing Clouddriver.
func (u Upstream) IsEnabled() bool { return u.BaseURL != "" }

// UpstreamConfig returns the configuration of package upstream, or nil if there is no existing
// Clouddriver.
func (u Upstream) UpstreamConfig() (*upstream.Config, error) {
	if !u.IsEnabled() {
		return nil, nil
	}
	tlsConfig, err := u.SSL.clientTLS().TLSConfig()
	if err != nil {
		return nil, err
	}
	c := u.Config
	c.TLS = tlsConfig
	return &c, nil
}

func (u Upstream) check(c configfile.Checker) {
	settings.CheckFile("ssl.cacertFile", u.SSL.CACertFile, c)
	settings.CheckFile("ssl.certFile", u.SSL.CertFile, c)
	settings.CheckFile("ssl.keyFile", u.SSL.KeyFile, c)
	if !u.IsEnabled() {
		return
	}
	if err := u.Validate(); err != nil {
		c.Problem("baseUrl", ": %s", err)
		return
	}
	if base, err := url.Parse(u.BaseURL); err == nil && base.Scheme == "http" && u.Password.Reveal() != "" {
		c.Notice("password", "upstream.password is sent without encryption, because upstream.baseUrl is not https")
	}
}
