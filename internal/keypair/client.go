package keypair

import "crypto/tls"

// Client says how to check a server's identity and show our own. The zero value
// trusts the system's authorities and shows no certificate.
type Client struct {
	ServerName  string // on the server's certificate; empty for the host that is dialled
	SkipVerify  bool   // accept any certificate
	Authorities string // PEM file; empty for the system's
	Own         Files  // zero to show none
}

// Config makes a client's TLS configuration. Its own certificate follows the
// files; authorities are read once, so whoever dials anew makes a new one.
func (c Client) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, InsecureSkipVerify: c.SkipVerify}
	if c.Authorities != "" {
		pool, err := Pool(c.Authorities)
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	if c.Own.Cert == "" {
		return config, nil
	}
	pair, err := Open(c.Own)
	if err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return pair.Certificate(), nil
	}
	return config, nil
}
