package settings

import (
	"crypto/tls"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/keypair"
)

// SSL secures an HTTP port with TLS.
type SSL struct {
	// Serve HTTPS.
	Enabled bool `config:"enabled" default:"false"`
	// PEM file with the certificate and its intermediates. It is read again when it changes.
	CertFile string `config:"certFile"`
	// PEM file with the private key: PKCS#8, PKCS#1 or EC. Default: the key is in certFile.
	KeyFile string `config:"keyFile"`
	// Password of the private key, if it is encrypted PKCS#8.
	KeyPassword configfile.Secret `config:"keyPassword,alias=keyFilePassword"`
	// PEM file with the certificate authorities of client certificates, required for want and need. It is read
	// again when it changes.
	CACertFile string `config:"cacertFile"`
	// Client certificates: none, request (ask for one), any (require one, without verification), want (verify
	// one if it is sent), need (require and verify).
	ClientAuth string `config:"clientAuth" default:"none"`
}

// TLSConfig returns the TLS configuration of the port, or nil for plain HTTP. Certificates and
// authorities are read again when their files change.
func (s SSL) TLSConfig() (*tls.Config, error) {
	if !s.Enabled {
		return nil, nil
	}
	auth, err := keypair.ParseClientAuth(s.ClientAuth)
	if err != nil {
		return nil, err
	}
	return keypair.ServerTLS{
		KeyPair:    s.keyPair(),
		ClientAuth: auth,
		CAFile:     FilePath(s.CACertFile),
	}.TLSConfig()
}

func (s SSL) keyPair() keypair.Files {
	return keypair.Files{Cert: FilePath(s.CertFile), Key: FilePath(s.KeyFile), Password: s.KeyPassword.Reveal()}
}

// Use returns the files of the port, and whether it has any.
func (s SSL) Use(name string) (keypair.Use, bool) {
	return keypair.Use{Name: name, KeyPair: s.keyPair(), CAFile: FilePath(s.CACertFile)}, s.Enabled
}

// Authenticates reports whether every client must present a valid certificate.
func (s SSL) Authenticates() bool {
	auth, err := keypair.ParseClientAuth(s.ClientAuth)
	return err == nil && s.Enabled && auth == tls.RequireAndVerifyClientCert
}

// DemandsCertificate reports whether clients without a certificate cannot connect.
func (s SSL) DemandsCertificate() bool {
	auth, err := keypair.ParseClientAuth(s.ClientAuth)
	return err == nil && s.Enabled && (auth == tls.RequireAnyClientCert || auth == tls.RequireAndVerifyClientCert)
}

// Check reports what is wrong with the group. The hint is added if certFile is missing; it may be empty.
func (s SSL) Check(hint string, c configfile.Checker) {
	if s.Enabled && s.CertFile == "" {
		c.Problem("enabled", " is true, but %q is missing%s", c.Path("certFile"), hint)
	}
	if !s.Enabled && s.CertFile != "" {
		c.Notice("certFile", "%s is set, but %s is not true: the port is plain HTTP", c.Path("certFile"), c.Path("enabled"))
	}
	ClientAuth{Value: s.ClientAuth, Enabled: s.Enabled, TrustKey: "cacertFile", Trust: s.CACertFile}.Check(c)
	CheckFile("certFile", s.CertFile, c)
	CheckFile("keyFile", s.KeyFile, c)
	CheckFile("cacertFile", s.CACertFile, c)
}

// ClientAuth is how a port treats client certificates: the key clientAuth of a group that also has the key enabled.
type ClientAuth struct {
	Value           string
	Enabled         bool // whether the port has TLS
	TrustKey, Trust string
}

// Check rejects settings that would accept more clients than they seem to.
func (a ClientAuth) Check(c configfile.Checker) {
	const key = "clientAuth"
	auth, err := keypair.ParseClientAuth(a.Value)
	switch {
	case err != nil:
		c.Problem(key, ": %s", err)
	case auth != tls.NoClientCert && !a.Enabled:
		c.Problem(key, " is %s, but %q is not true: client certificates require TLS", a.Value, c.Path("enabled"))
	case auth == tls.NoClientCert && a.Enabled && a.Trust != "":
		c.Notice(a.TrustKey, "%s is set, but %s is not: client certificates are not requested", c.Path(a.TrustKey), c.Path(key))
	case keypair.VerifiesClientCert(auth) && a.Trust == "":
		c.Problem(key, " is %s, but %q is missing: set it to the file with the authorities that sign client certificates", a.Value, c.Path(a.TrustKey))
	}
}
