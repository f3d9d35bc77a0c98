package keypair

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/youmark/pkcs8"
)

// load reads both files, and checks that the key belongs to the certificate.
func load(files Files) (*tls.Certificate, error) {
	data, err := read(files.Cert)
	if err != nil {
		return nil, err
	}
	chain, err := parseChain(files.Cert, data)
	if err != nil {
		return nil, err
	}
	data, err = read(files.key())
	if err != nil {
		return nil, err
	}
	key, err := parseKey(files.key(), data, files.Password)
	if err != nil {
		return nil, err
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(chain[0].PublicKey) {
		return nil, fmt.Errorf("the key in %s does not belong to the first certificate in %s", files.key(), files.Cert)
	}
	cert := &tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, c := range chain {
		cert.Certificate = append(cert.Certificate, c.Raw)
	}
	return cert, nil
}

// parseChain returns all certificates in a file. The intermediates are sent too, because the peer
// may need them to verify the chain.
func parseChain(path string, data []byte) ([]*x509.Certificate, error) {
	blocks, err := pemBlocks(path, data)
	if err != nil {
		return nil, err
	}
	var chain []*x509.Certificate
	for _, block := range blocks {
		if block.Type != certificateType {
			continue
		}
		c, err := block.certificate(path)
		if err != nil {
			return nil, err
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return nil, errNoCertificate(path)
	}
	return chain, nil
}

// parseKey returns the first private key in a file.
func parseKey(path string, data []byte, password string) (crypto.Signer, error) {
	blocks, err := pemBlocks(path, data)
	if err != nil {
		return nil, err
	}
	for _, block := range blocks {
		if !strings.HasSuffix(block.Type, "PRIVATE KEY") {
			continue
		}
		key, err := parseBlock(block.Block, password)
		if err != nil {
			return nil, fmt.Errorf("read the key in %s: %w", path, err)
		}
		signer, ok := key.(crypto.Signer)
		if !ok {
			return nil, fmt.Errorf("read the key in %s: a %T cannot be used for TLS", path, key)
		}
		return signer, nil
	}
	return nil, fmt.Errorf("the file %s contains no private key in PEM format: add the key to it, or name the file that has the key", path)
}

var (
	errOldEncryption = errors.New("it uses a legacy encryption (Proc-Type: 4,ENCRYPTED): convert it with openssl pkcs8 -topk8")
	errNoPassword    = errors.New("it is encrypted, but no password is configured")
	errPassword      = errors.New("it cannot be decrypted with the configured password")
)

func parseBlock(block *pem.Block, password string) (any, error) {
	if strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
		return nil, errOldEncryption
	}
	switch block.Type {
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(block.Bytes)
	case "PRIVATE KEY":
		return x509.ParsePKCS8PrivateKey(block.Bytes)
	case "ENCRYPTED PRIVATE KEY":
		return decrypt(block.Bytes, password)
	}
	return nil, fmt.Errorf("a PEM block of type %s is not supported", block.Type)
}

// decrypt decrypts a PKCS#8 key. It does not return the library's error, because that may quote
// decrypted bytes.
func decrypt(data []byte, password string) (any, error) {
	if password == "" {
		return nil, errNoPassword
	}
	key, err := pkcs8.ParsePKCS8PrivateKey(data, []byte(password))
	if err != nil {
		return nil, errPassword
	}
	return key, nil
}
