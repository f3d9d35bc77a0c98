package kube

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
)

// certificateSubjects names the certificates of a PEM bundle: ` (CN=kubernetes)`, or
// nothing where there are none.
func certificateSubjects(bundle []byte) string {
	var names []string
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
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
