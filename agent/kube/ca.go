package kube

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
)

// certificateSubjects lists the subjects of the certificates in a PEM bundle, for
// example " (CN=kubernetes)". It returns "" if there are none.
func certificateSubjects(bundle []byte) string {
	var names []string
	for {
		var block *pem.Block
		block, bundle = pem.Decode(bundle)
		if block == nil {
			break
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			names = append(names, cert.Subject.String())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s)", strings.Join(names, "; "))
}
