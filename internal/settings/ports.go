package settings

import (
	"crypto/tls"
	"fmt"
	"net"

	"github.com/vedette-io/vedette/internal/keypair"
)

// Port describes a port as it is configured, for the output of the command check.
type Port struct {
	Name, Address string
	TLS           bool
	MinVersion    uint16 // of TLS; 0 means TLS 1.2
	ClientAuth    string // as in the configuration
	CAFile        string // authorities of client certificates
	KeyPair       keypair.Files
	Also          string // what else decides who may connect; may be empty
}

// Port returns the port that the group secures.
func (s SSL) Port(name, address string) Port {
	return Port{Name: name, Address: address, TLS: s.Enabled, ClientAuth: s.ClientAuth, CAFile: FilePath(s.CACertFile), KeyPair: s.keyPair()}
}

// String describes who may connect to the port, and how.
func (p Port) String() string {
	text := fmt.Sprintf("port for %s: %s, ", p.Name, p.listensOn())
	if !p.TLS {
		return text + "plain text, no client certificates" + p.Also
	}
	version := "TLS 1.2 or later"
	if p.MinVersion >= tls.VersionTLS13 {
		version = "TLS 1.3"
	}
	return text + version + ", " + p.clients() + p.Also + ", certificate " + describe(p.KeyPair)
}

func (p Port) listensOn() string {
	host, port, err := net.SplitHostPort(p.Address)
	switch ip := net.ParseIP(host); {
	case err != nil:
		return p.Address
	case host == "" || ip != nil && ip.IsUnspecified():
		return "all addresses, " + port
	}
	return p.Address
}

// clients says which client certificates the port demands.
func (p Port) clients() string {
	auth, err := keypair.ParseClientAuth(p.ClientAuth)
	if err != nil {
		return err.Error()
	}
	switch auth {
	case tls.RequireAndVerifyClientCert:
		return "client certificates required, signed by an authority in " + p.CAFile
	case tls.VerifyClientCertIfGiven:
		return "client certificates not required, and verified by the authorities in " + p.CAFile + " if they are sent"
	case tls.RequireAnyClientCert:
		return "client certificates required, but not verified: everyone can make one"
	case tls.RequestClientCert:
		return "client certificates asked for, but neither required nor verified"
	}
	return "no client certificates"
}

// describe describes a certificate, or says why it cannot be used.
func describe(files keypair.Files) string {
	pair, err := keypair.Open(files)
	if err != nil {
		return "not usable: " + err.Error()
	}
	return files.Cert + ", " + pair.Describe()
}
