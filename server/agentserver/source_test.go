package agentserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// TestAddressesOfANetworkAreOneSource checks that whoever has a network of IPv6 does not have a share for each of its
// addresses.
func TestAddressesOfANetworkAreOneSource(t *testing.T) {
	source := func(address string) string {
		return sourceOf(peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(address), Port: 1}}))
	}
	if a, b := source("2001:db8::1"), source("2001:db8::ffff:1"); a != b {
		t.Errorf("got the sources %q and %q for one network, want one", a, b)
	}
	if a, b := source("2001:db8::1"), source("2001:db8:0:1::1"); a == b {
		t.Errorf("got the source %q for two networks", a)
	}
	if a, b := source("192.0.2.1"), source("192.0.2.2"); a == b {
		t.Errorf("got the source %q for two addresses", a)
	}
	if a, b := source("192.0.2.1"), source("::ffff:192.0.2.1"); a != b {
		t.Errorf("got the sources %q and %q for one address", a, b)
	}
}

// TestUnverifiedCertificatesAreNoSources checks that whoever makes certificates of his own does not have a share for each.
func TestUnverifiedCertificatesAreNoSources(t *testing.T) {
	source := func(raw string, isVerified bool) string {
		certificate := &x509.Certificate{Raw: []byte(raw)}
		state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}}
		if isVerified {
			state.VerifiedChains = [][]*x509.Certificate{{certificate}}
		}
		return sourceOf(peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1},
			AuthInfo: credentials.TLSInfo{State: state}}))
	}
	if a, b := source("a", false), source("b", false); a != b {
		t.Errorf("got the sources %q and %q for certificates that nobody verified, want one", a, b)
	}
	if a, b := source("a", true), source("b", true); a == b {
		t.Errorf("got the source %q for two agents behind a proxy", a)
	}
}
