package settings

import (
	"crypto/tls"
	"fmt"

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

// Authenticates reports whether every client must present a valid certificate.
func (s SSL) Authenticates() bool {
	auth, err := keypair.ParseClientAuth(s.ClientAuth)
	return err == nil && s.Enabled && auth == tls.RequireAndVerifyClientCert
}

// Check reports what is wrong with the group at a path. The hint is added if certFile is missing; it
// may be empty.
func (s SSL) Check(path, hint string, r Reporter) {
	if s.Enabled && s.CertFile == "" {
		r.Problem(path+".enabled", "%q is true, but %q is missing%s", path+".enabled", path+".certFile", hint)
	}
	if !s.Enabled && s.CertFile != "" {
		r.Notice(path+".certFile", fmt.Sprintf("%s.certFile is set, but %s.enabled is not true: the port is plain HTTP", path, path))
	}
	ClientAuth{Key: path + ".clientAuth", Value: s.ClientAuth, EnabledKey: path + ".enabled", Enabled: s.Enabled,
		TrustKey: path + ".cacertFile", Trust: s.CACertFile}.Check(r)
	CheckFile(path+".certFile", s.CertFile, r)
	CheckFile(path+".keyFile", s.KeyFile, r)
	CheckFile(path+".cacertFile", s.CACertFile, r)
}

// ClientAuth is how a port treats client certificates, with the keys of the settings that matter.
type ClientAuth struct {
	Key, Value      string
	EnabledKey      string
	Enabled         bool // whether the port has TLS
	TrustKey, Trust string
}

// Check rejects settings that would accept more clients than they seem to.
func (a ClientAuth) Check(r Reporter) {
	auth, err := keypair.ParseClientAuth(a.Value)
	switch {
	case err != nil:
		r.Problem(a.Key, "%q: %s", a.Key, err)
	case auth != tls.NoClientCert && !a.Enabled:
		r.Problem(a.Key, "%q is %s, but %q is not true: client certificates require TLS", a.Key, a.Value, a.EnabledKey)
	case auth == tls.NoClientCert && a.Enabled && a.Trust != "":
		r.Notice(a.TrustKey, fmt.Sprintf("%s is set, but %s is not: client certificates are not requested", a.TrustKey, a.Key))
	case keypair.VerifiesClientCert(auth) && a.Trust == "":
		r.Problem(a.Key, "%q is %s, but %q is missing: set it to the file with the authorities that sign client certificates", a.Key, a.Value,
			a.TrustKey)
	}
}
