package upstream

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// Config configures the connection to the upstream Clouddriver. Zero values mean the defaults.
type Config struct {
	BaseURL string // for example "http://spin-clouddriver-old:7002"

	// Username and Password are sent with Basic authentication, instead of the caller's. Empty means
	// that the caller's Authorization is passed on.
	Username string
	Password string
	// Headers are set in each request, for example a token of a gateway.
	Headers map[string]string
	TLS     *tls.Config // for https; nil means Go's default

	// MergeTimeout bounds how long a merged answer waits for the upstream Clouddriver, and for memory; 15 s. Spinnaker's
	// services wait for 20 s by default (OkHttpClientConfigurationProperties of kork).
	MergeTimeout time.Duration
	// Timeout bounds how long an answer that is passed on may take to begin, and how long it may
	// pause; 60 s.
	Timeout time.Duration
	// MergeBytes bounds the memory of all answers that are being merged; 128 MiB. One of them may
	// take half of it.
	MergeBytes int64
	// RefreshInterval is how often the accounts and applications of the upstream Clouddriver are read; 30 s.
	RefreshInterval time.Duration
	// MaxStale is how old a last complete answer may be; 24 h.
	MaxStale time.Duration
	// Partial allows that answers for persons come without the part of the upstream Clouddriver.
	Partial bool

	// HasProjects says that this server knows the clusters of projects. Otherwise requests for them are passed on.
	HasProjects bool
	// Missing says what prevents that an account is answered from what its agent has reported. Nil says nothing.
	Missing func(ctx context.Context, account vedette.AccountName) string

	Log *slog.Logger // nil discards the log
}

// Validate checks the configuration.
func (c *Config) Validate() error {
	base, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return vedette.Errorf(vedette.Invalid, "the address of the upstream Clouddriver must be a URL like http://spin-clouddriver:7002")
	case base.User != nil:
		return vedette.Errorf(vedette.Invalid, "the address of the upstream Clouddriver must not have a user: configure the user separately")
	case base.RawQuery != "" || base.Fragment != "":
		return vedette.Errorf(vedette.Invalid, "the address of the upstream Clouddriver must not have a query or a fragment")
	case c.MergeTimeout < 0 || c.Timeout < 0 || c.MergeBytes < 0 || c.RefreshInterval < 0 || c.MaxStale < 0:
		return vedette.Errorf(vedette.Invalid, "the times and sizes of the upstream Clouddriver must not be negative")
	case c.Password != "" && c.Username == "":
		return vedette.Errorf(vedette.Invalid, "the upstream Clouddriver has a password, but no user")
	}
	return c.validateHeaders()
}

func (c *Config) validateHeaders() error {
	for name, value := range c.Headers {
		if !isToken(name) || strings.ContainsFunc(value, isControl) {
			return vedette.Errorf(vedette.Invalid, "the header %q for the upstream Clouddriver is not a valid HTTP header", name)
		}
		switch http.CanonicalHeaderKey(name) {
		case "Host", "Connection", "Content-Length", "Transfer-Encoding", viaHeader:
			return vedette.Errorf(vedette.Invalid, "the header %q for the upstream Clouddriver cannot be configured, because the server sets it", name)
		}
	}
	return nil
}

// isToken reports whether a text can be the name of a header.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		isAlphanumeric := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !isAlphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

func (c Config) withDefaults() Config {
	if c.MergeTimeout == 0 {
		c.MergeTimeout = 15 * time.Second
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	if c.MergeBytes == 0 {
		c.MergeBytes = 128 << 20
	}
	if c.RefreshInterval == 0 {
		c.RefreshInterval = 30 * time.Second
	}
	if c.MaxStale == 0 {
		c.MaxStale = 24 * time.Hour
	}
	if c.Missing == nil {
		c.Missing = func(context.Context, vedette.AccountName) string { return "not all of it is stored yet" }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
