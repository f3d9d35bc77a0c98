package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
)

// Explain returns an error that says why the API server cannot be used and what to do
// about it. It returns errors that already do so as they are.
func (c *Cluster) Explain(err error) error {
	if err == nil || vedette.KindOf(err) != "" {
		return err
	}
	explained := explainError(err, c.Host(), c.caDescription())
	if source := c.usedAccess().source; source != nil && StatusCode(err) == http.StatusUnauthorized {
		explained = vedette.Errorf(vedette.Denied, "%w; or %s", explained, source.Rejected())
	}
	if unsent := (*unsentError)(nil); errors.As(err, &unsent) && !errors.As(explained, &unsent) {
		return &unsentError{explained}
	}
	return explained
}

// caDescription names the authority that must sign the API server's certificate.
func (c *Cluster) caDescription() string {
	t := c.usedAccess().cfg.TLSClientConfig
	switch {
	case t.CAFile != "":
		return "the CA in " + t.CAFile
	case len(t.CAData) > 0:
		return "the kubeconfig's certificate-authority-data" + certificateSubjects(t.CAData)
	}
	return "this machine's CAs"
}

// explainError is the only place that explains errors on the way to an API server.
func explainError(err error, host, ca string) error {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return explainStatus(status, host)
	}
	if strings.Contains(err.Error(), "getting credentials:") { // whatever it says is not about the API server
		return vedette.Errorf(vedette.Denied, "there are no credentials for %s: %w", host, err)
	}
	if e := explainCertificate(err, host, ca); e != nil {
		return e
	}
	return explainNetwork(err, host)
}

func explainStatus(s *StatusError, host string) error {
	switch {
	case s.Code == http.StatusUnauthorized && s.ClockSkew != 0:
		return vedette.Errorf(vedette.Denied,
			"%s rejected the credentials, and this machine's clock is %s the API server's: set the clock, because tokens and certificates are valid for a time only (%w)",
			host, describeSkew(s.ClockSkew), s)
	case s.Code == http.StatusUnauthorized:
		return vedette.Errorf(vedette.Denied,
			"%s rejected the credentials: the token or certificate has expired, belongs to another cluster, or its ServiceAccount was deleted: renew it in the kubeconfig (%w)", host,
			s)
	case s.Code == http.StatusForbidden:
		return vedette.Errorf(vedette.Denied, "RBAC at %s denied the request: %w", host, s)
	case s.Code >= 300 && s.Code < 400:
		return vedette.Errorf(vedette.Invalid,
			"%s redirects elsewhere, as sign-in pages do and API servers don't: check the server's address (%w)", host, s)
	case s.Code == http.StatusBadRequest && strings.Contains(s.Message, "HTTPS"):
		return vedette.Errorf(vedette.Invalid, "%s expects TLS: write https:// in the server's address (%w)", host, s)
	case s.Code == http.StatusTooManyRequests:
		return vedette.Errorf(vedette.Unavailable, "%s limits the rate of requests: %w", host, s)
	}
	return vedette.Errorf(vedette.Unavailable, "%s: %w", host, s)
}

// describeSkew returns "2h0m0s ahead of" or "2h0m0s behind". The difference is rounded, so that the
// text stays the same.
func describeSkew(skew time.Duration) string {
	if skew < 0 {
		return skew.Abs().Round(time.Minute).String() + " behind"
	}
	return skew.Round(time.Minute).String() + " ahead of"
}

func explainCertificate(err error, host, ca string) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return vedette.Errorf(vedette.Invalid, "%s presented the certificate %s, which %s did not sign: configure the CA of this API server (%w)",
			host, describeCertificate(unknown.Cert, err), ca, err)
	case errors.As(err, &name):
		return vedette.Errorf(vedette.Invalid,
			"%s presented a certificate for other names: use one of them as the server's address or set tls-server-name (%w)", host, err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return vedette.Errorf(vedette.Unavailable,
			"the certificate of %s has expired or is not valid yet: renew it, or set this machine's clock (%w)", host, err)
	case errors.As(err, &invalid):
		return vedette.Errorf(vedette.Invalid, "the certificate of %s is not valid: %w", host, err)
	}
	return nil
}

func describeCertificate(cert *x509.Certificate, err error) string {
	var verify *tls.CertificateVerificationError
	if cert == nil && errors.As(err, &verify) && len(verify.UnverifiedCertificates) > 0 {
		cert = verify.UnverifiedCertificates[0]
	}
	if cert == nil {
		return "of an unknown authority"
	}
	return fmt.Sprintf("%q issued by %q", cert.Subject, cert.Issuer)
}

func explainNetwork(err error, host string) error {
	var dnsErr *net.DNSError
	var recordErr tls.RecordHeaderError
	text := err.Error()
	switch {
	case errors.Is(err, ErrCannotWipe):
		return vedette.Errorf(vedette.Unavailable, "%s: %w", host, err)
	case errors.As(err, &dnsErr):
		return vedette.Errorf(vedette.Unavailable, "the host name in %s cannot be resolved: check the address and this machine's DNS (%w)", host,
			err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return vedette.Errorf(vedette.Unavailable, "nothing listens at %s: the API server is down, or the address is wrong (%w)", host, err)
	case errors.As(err, &recordErr) || strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return vedette.Errorf(vedette.Invalid, "%s answers in plain HTTP: write http:// in the server's address, or check its port (%w)", host,
			err)
	case strings.Contains(text, "malformed HTTP response") && strings.Contains(text, `\x15\x03`):
		return vedette.Errorf(vedette.Invalid, "%s expects TLS: write https:// in the server's address (%w)", host, err)
	case strings.Contains(text, "remote error: tls:"):
		return vedette.Errorf(vedette.Denied, "%s rejected the client certificate: renew it in the kubeconfig (%w)", host, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return vedette.Errorf(vedette.Unavailable, "%s did not respond in time: check firewalls and proxies on the way (%w)", host, err)
	case IsInterrupted(err), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return vedette.Errorf(vedette.Unavailable, "%s closed the connection in the middle of a request: %w", host, err)
	case errors.Is(err, jsonstream.ErrMalformed):
		return vedette.Errorf(vedette.Unavailable, "%s sent %w", host, err)
	}
	return vedette.Errorf(vedette.Unavailable, "connect to %s: %w", host, err)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// IsInterrupted reports whether a response broke off before its end.
func IsInterrupted(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "stream error")
}

// IsCertificateError reports whether one side rejected the other's certificate.
func IsCertificateError(err error) bool {
	return explainCertificate(err, "", "") != nil || strings.Contains(err.Error(), "remote error: tls:")
}
