package uplink

import (
	"context"
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
)

// explainError says what a failed connection means and what to do about it.
func explainError(err error, cfg Config) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, io.EOF) {
		return vedette.Errorf(vedette.Unavailable, "the server at %s ended the connection", cfg.Target)
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, w := range knownErrors {
		if w.tls != nil && *w.tls != cfg.TLS || !strings.Contains(s.Message(), w.contains) {
			continue
		}
		return vedette.Errorf(vedette.Unavailable, "%s: %s: %w", cfg.Target, w.advice, err)
	}
	if s.Code() == codes.Unimplemented {
		return vedette.Errorf(vedette.Unavailable, "%s: a gRPC server answers there, but no Vedette server: %w", cfg.Target, err)
	}
	return vedette.Errorf(vedette.Unavailable, "connect to the server at %s: %s", cfg.Target, s.Message())
}

var requiresTLS, requiresPlaintext = true, false

// knownErrors are gRPC's and crypto/tls's texts, the first that fits, and what they
// mean to somebody who sets up an agent.
var knownErrors = []struct {
	contains string
	tls      *bool // whether it only means this with or without TLS
	advice   string
}{
	{"first record does not look like a TLS handshake", &requiresTLS, "what listens there speaks no TLS; if it is the server's gRPC port (9091 is the gRPC port by default), set clouddriver.insecure to true, or switch TLS on at the server (grpc.server.security)"},
	{"looked like an HTTP/1.1 header", &requiresPlaintext, "the server speaks HTTP/1.1 or TLS on this port; the gRPC port is 9091 by default, and TLS is used when clouddriver.insecure is false"},
	{"error reading server preface: EOF", &requiresPlaintext, "the server hung up at once, as one that expects TLS does; set clouddriver.insecure to false, or give clouddriver.tls.cacertFile"},
	{"error reading server preface: read", &requiresPlaintext, "the server hung up at once, as one that expects TLS does; set clouddriver.insecure to false, or give clouddriver.tls.cacertFile"},
	{"failed to verify certificate: x509: certificate signed by unknown authority", &requiresTLS, "the server's certificate is signed by an authority that is not trusted here; set clouddriver.tls.cacertFile to that authority's certificate"},
	{"certificate has expired or is not yet valid", &requiresTLS, "the server's certificate has expired or is not valid yet; renew it, or set the clocks right"},
	{"doesn't contain any IP SANs", &requiresTLS, "the server's certificate names no addresses; set clouddriver.tls.serverName, or connect by a name that it holds"},
	{"x509: certificate is valid for", &requiresTLS, "the server's certificate names another host; set clouddriver.tls.serverName, or connect by a name that it holds"},
	{"certificate required", &requiresTLS, "the server asks for a client certificate; set clouddriver.tls.clientCertFile and clientKeyFile"},
	{"bad certificate", &requiresTLS, "the server refuses our client certificate"},
	{"connection refused", nil, "nothing listens there; is the server running, and is this its gRPC port (9091 by default)?"},
	{"produced zero addresses", nil, "this host name can't be resolved; check clouddriver.grpc and the DNS of this machine"},
	{"no such host", nil, "this host name can't be resolved; check clouddriver.grpc and the DNS of this machine"},
	{"unexpected HTTP status code received from server: 4", nil, "something answers there that speaks no gRPC, perhaps the REST port or a proxy without HTTP/2"},
	{"unexpected HTTP status code received from server: 5", nil, "a proxy on the way has no server behind it, or speaks no HTTP/2"},
	{"i/o timeout", nil, "no answer; is a firewall or a network policy on the way?"},
	{"context deadline exceeded", nil, "no answer in time; is a firewall or a network policy on the way?"},
}
