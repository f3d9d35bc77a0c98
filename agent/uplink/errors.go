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

// explainError returns an error that says why a connection failed and what to do about it.
func explainError(err error, cfg Config) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, io.EOF) {
		return vedette.Errorf(vedette.Unavailable, "the server at %s closed the connection", cfg.Target)
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	if masked := cfg.withoutToken(s); masked != s {
		s, err = masked, masked.Err()
	}
	if explained := explainToken(s, cfg); explained != nil {
		return explained
	}
	if advice := explainRejection(s.Message(), cfg); advice != "" {
		return vedette.Errorf(vedette.Denied, "%s: %s: %w", cfg.Target, advice, err)
	}
	for _, w := range knownErrors {
		if w.tls != nil && *w.tls != cfg.TLS || !strings.Contains(s.Message(), w.contains) {
			continue
		}
		return vedette.Errorf(vedette.Unavailable, "%s: %s: %w", cfg.Target, w.advice, err)
	}
	if s.Code() == codes.Unimplemented {
		return vedette.Errorf(vedette.Unavailable, "%s is a gRPC server but not a Vedette server: %w", cfg.Target, err)
	}
	return vedette.Errorf(vedette.Unavailable, "connect to the server at %s: %s", cfg.Target, s.Message())
}

// rejections maps the TLS alerts by which a server rejects a client certificate to the reason and
// what to do. The texts are those of crypto/tls. Alerts that an agent with a wrong TLS version
// gets, for example, are not among them.
var rejections = []struct{ alert, advice string }{
	{"expired certificate", "it has expired, or is not valid yet by the server's clock: renew it, or correct the clocks"},
	{"unknown certificate authority",
		"it is not signed by an authority that the server trusts: use a certificate of such an authority, or add its authority to the server's grpc.server.security.trustCertCollection"},
	{"bad certificate",
		"it is not valid for an agent, for example because its usage is not clientAuth or its authority may not sign its name: the server's log has the reason"},
	{"revoked certificate", "it was revoked: renew it"},
	{"unsupported certificate", "the server does not support its type: use one with an RSA or ECDSA key"},
	{"unknown certificate", "the server's log has the reason"},
	{"access denied", "the server, or a proxy in front of it, does not allow its name"},
}

// explainRejection explains an alert about the client certificate. It returns "" for any other
// text. The words "does not accept this agent" tell it from errors about the certificate of
// the server, which have similar texts.
func explainRejection(text string, cfg Config) string {
	_, alert, found := strings.Cut(text, "remote error: tls: ")
	if !found || !cfg.TLS {
		return ""
	}
	const set = "set clouddriver.tls.clientCertFile and clientKeyFile"
	switch {
	case strings.HasPrefix(alert, "certificate required"):
		return "the server requires a client certificate; " + set
	case cfg.Certificate == nil && (strings.HasPrefix(alert, "bad certificate") || strings.HasPrefix(alert, "handshake failure")):
		return "the server ended the handshake; if it requires a client certificate, " + set // TLS 1.2 has no alert of its own
	}
	for _, r := range rejections {
		if strings.HasPrefix(alert, r.alert) {
			return "the server does not accept this agent's certificate" + describeCertificate(cfg) + ": " + r.advice
		}
	}
	return ""
}

func describeCertificate(cfg Config) string {
	if cfg.Certificate == nil {
		return ""
	}
	return " (" + cfg.Certificate() + ")"
}

var requiresTLS, requiresPlaintext = true, false

// knownErrors maps texts of gRPC and crypto/tls to advice. The first match is used. The
// texts are the only way to tell these errors apart, because gRPC passes them on as strings.
var knownErrors = []struct {
	contains string
	tls      *bool // whether this applies only with (true) or without (false) TLS
	advice   string
}{
	{"first record does not look like a TLS handshake", &requiresTLS,
		"this port does not use TLS; if it is the server's gRPC port (9091 is the gRPC port by default), set clouddriver.insecure to true, or enable TLS at the server (grpc.server.security)"},
	{"looked like an HTTP/1.1 header", &requiresPlaintext,
		"the server uses HTTP/1.1 or TLS on this port; the gRPC port is 9091 by default, and the agent uses TLS if clouddriver.insecure is false"},
	{"error reading server preface: EOF", &requiresPlaintext,
		"the server closed the connection at once, as a server that expects TLS does; set clouddriver.insecure to false, or set clouddriver.tls.cacertFile"},
	{"error reading server preface: read", &requiresPlaintext,
		"the server closed the connection at once, as a server that expects TLS does; set clouddriver.insecure to false, or set clouddriver.tls.cacertFile"},
	{"failed to verify certificate: x509: certificate signed by unknown authority", &requiresTLS,
		"the agent does not trust the CA of the server's certificate; set clouddriver.tls.cacertFile to the certificate of that CA"},
	{"certificate has expired or is not yet valid", &requiresTLS,
		"the server's certificate has expired or is not valid yet; renew it, or correct the clocks"},
	{"doesn't contain any IP SANs", &requiresTLS,
		"the server's certificate has no IP addresses; set clouddriver.tls.serverName, or connect to a name in the certificate"},
	{"x509: certificate is valid for", &requiresTLS,
		"the server's certificate is for another host; set clouddriver.tls.serverName, or connect to a name in the certificate"},
	{"connection refused", nil, "nothing listens at this address; check that the server is running and that this is its gRPC port (9091 by default)"},
	{"produced zero addresses", nil, "this host name cannot be resolved; check clouddriver.grpc and the DNS of this machine"},
	{"no such host", nil, "this host name cannot be resolved; check clouddriver.grpc and the DNS of this machine"},
	{"unexpected HTTP status code received from server: 4", nil,
		"this port does not use gRPC; it may be the REST port or a proxy without HTTP/2"},
	{"unexpected HTTP status code received from server: 5", nil, "a proxy on the way has no server behind it, or does not support HTTP/2"},
	{"i/o timeout", nil, "the server did not respond; check firewalls and network policies on the way"},
	{"context deadline exceeded", nil, "the server did not respond in time; check firewalls and network policies on the way"},
}
