package keypair

import "crypto/tls"

// ClientTLS says how to check a server's identity and show our own. The zero value
// trusts the system's authorities and shows no certificate.
type ClientTLS struct {
	ServerName string // on the server's certificate; empty for the host that is dialled
	SkipVerify bool   // accept any certificate
	CAFile     string // PEM file; empty for the system's
	KeyPair    Files  // zero to show none
}

// TLSConfig makes a client's TLS configuration. Its own certificate follows the
// files; authorities are read once, so whoever dials anew makes a new one.
func (c ClientTLS) TLSConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, InsecureSkipVerify: c.SkipVerify}
	if c.CAFile != "" {
		pool, err := LoadCertPool(c.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	if c.KeyPair.Cert == "" {
		return config, nil
	}
	pair, err := Open(c.KeyPair)
	if err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return pair.Certificate(), nil
	}
	return config, nil
}
