package keypair

import "crypto/tls"

// ClientTLS configures a TLS client. The zero value trusts the system's authorities and sends no
// certificate.
type ClientTLS struct {
	ServerName string // expected in the server's certificate; "" means the host that is dialed
	SkipVerify bool   // accept any server certificate
	CAFile     string // PEM file; "" means the system's authorities
	KeyPair    Files  // the zero value sends no certificate
}

// TLSConfig returns a client's TLS configuration. Its certificate is reloaded when the files
// change. The authorities are read once, so create a new configuration for each dial.
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
