package config

import (
	"net/url"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/settings"
	"github.com/vedette-io/vedette/server/upstream"
)

// Upstream is an existing Clouddriver behind this server. The server answers for accounts of agents, and passes
// on or merges the rest.
type Upstream struct {
	// URL of the existing Clouddriver, for example http://spin-clouddriver-upstream:7002. Not the address under
	// which Spinnaker reaches this server. Empty: there is none, and the server knows only accounts of agents.
	BaseURL string `config:"baseUrl"`
	// User for Basic authentication. Default: the Authorization header of the caller is passed on.
	Username string `config:"username"`
	// Password for Basic authentication.
	Password configfile.Secret `config:"password"`
	// Headers to set in each request, for example a token that a gateway requires.
	Headers map[string]configfile.Secret `config:"headers"`
	// Time that answers which concern both wait for the existing Clouddriver, and for memory. After it, they are an error
	// that Spinnaker retries, or have the last complete answer of the existing Clouddriver. Spinnaker's services wait
	// for 20 s by default.
	MergeTimeout configfile.Duration `config:"mergeTimeout" default:"15s"`
	// How often the accounts and applications of the existing Clouddriver are read. It is asked only about what it may have.
	RefreshInterval configfile.Duration `config:"refreshInterval" default:"30s"`
	// How old the last complete answer of the existing Clouddriver may be where it stands for the current one: in lists of
	// accounts, applications, artifact accounts and stages.
	MaxStale configfile.Duration `config:"maxStale" default:"24h"`
	// Whether searches and clusters of projects, at which people look, come without the part of the existing Clouddriver if it
	// does not answer. They have the header X-Vedette-Incomplete then. Otherwise they are an error.
	Partial bool `config:"partial"`
	// Time after which an answer that is passed on must begin, and for which it may pause.
	Timeout configfile.Duration `config:"timeout" default:"1m"`
	// Memory for all answers that are being merged, which are compressed meanwhile, and for tasks of the existing Clouddriver
	// that are followed. An answer waits for memory until mergeTimeout.
	MergeBytes configfile.Bytes `config:"mergeBytes" default:"128MiB"`
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
	c := u.plainConfig()
	c.TLS = tlsConfig
	return c, nil
}

// plainConfig returns the configuration without TLS, whose files may not be there yet.
func (u Upstream) plainConfig() *upstream.Config {
	headers := map[string]string{}
	for name, value := range u.Headers {
		headers[name] = value.Reveal()
	}
	return &upstream.Config{BaseURL: u.BaseURL, Username: u.Username, Password: u.Password.Reveal(), Headers: headers,
		MergeTimeout: time.Duration(u.MergeTimeout), Timeout: time.Duration(u.Timeout), MergeBytes: int64(u.MergeBytes),
		RefreshInterval: time.Duration(u.RefreshInterval), MaxStale: time.Duration(u.MaxStale), Partial: u.Partial}
}

func (c *Config) checkUpstream(u Upstream) {
	const prefix = "upstream."
	for key, d := range map[string]configfile.Duration{"mergeTimeout": u.MergeTimeout, "timeout": u.Timeout,
		"refreshInterval": u.RefreshInterval, "maxStale": u.MaxStale} {
		if time.Duration(d) < 100*time.Millisecond {
			c.addProblem(prefix+key, "%q must be 100ms or more, got %s", prefix+key, time.Duration(d))
		}
	}
	if u.MergeBytes < 1<<20 {
		c.addProblem(prefix+"mergeBytes", "%q must be at least 1MiB, got %s", prefix+"mergeBytes", u.MergeBytes)
	}
	c.checkFile(prefix+"ssl.cacertFile", u.SSL.CACertFile)
	c.checkFile(prefix+"ssl.certFile", u.SSL.CertFile)
	c.checkFile(prefix+"ssl.keyFile", u.SSL.KeyFile)
	if !u.IsEnabled() {
		return
	}
	if err := u.plainConfig().Validate(); err != nil {
		c.addProblem(prefix+"baseUrl", "%q: %s", prefix+"baseUrl", err)
		return
	}
	if base, err := url.Parse(u.BaseURL); err == nil && base.Scheme == "http" && u.Password.Reveal() != "" {
		c.addNotice(prefix+"password", "upstream.password is sent without encryption, because upstream.baseUrl is not https")
	}
}
