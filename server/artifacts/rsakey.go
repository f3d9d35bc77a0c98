package artifacts

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/youmark/pkcs8"
)

// parseRSAKey parses a private key in the forms of openssl.
func parseRSAKey(block *pem.Block, passphrase []byte) (*rsa.PrivateKey, error) {
	switch block.Type {
	case "RSA PRIVATE KEY":
		return parsePKCS1(block, passphrase)
	case "PRIVATE KEY":
		passphrase = nil // it is not encrypted
	case "ENCRYPTED PRIVATE KEY":
		if len(passphrase) == 0 {
			return nil, errors.New("it is encrypted, and the account has no passphrase")
		}
	default:
		return nil, errors.New("it is a " + block.Type)
	}
	var passphrases [][]byte
	if len(passphrase) > 0 {
		passphrases = [][]byte{passphrase}
	}
	key, err := pkcs8.ParsePKCS8PrivateKeyRSA(block.Bytes, passphrases...)
	if err != nil {
		return nil, fmt.Errorf("parse PKCS#8: %w", err)
	}
	return key, nil
}

// parsePKCS1 parses the older form, which Oracle's own instructions produce, encrypted or not.
func parsePKCS1(block *pem.Block, passphrase []byte) (*rsa.PrivateKey, error) {
	der := block.Bytes
	//nolint:staticcheck // the encryption is weak, but Oracle's instructions produce it
	if x509.IsEncryptedPEMBlock(block) {
		var err error
		if der, err = x509.DecryptPEMBlock(block, passphrase); err != nil {
			return nil, fmt.Errorf("decrypt it: %w", err)
		}
	}
	return x509.ParsePKCS1PrivateKey(der)
}
