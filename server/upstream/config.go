package upstream

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
)

// Config configures the connection to an upstream Clouddriver. Numbers that are zero have the defaults of their tags.
type Config struct {
	// URL of the existing Clouddriver, for example http://spin-clouddriver-upstream:7002. Not the address under
	// which Spinnaker reaches this server. Empty: there is none, and the server knows only accounts of agents.
	BaseURL string `config:"baseUrl"`
	// User for Basic authentication. Default: the Authorization header of the caller is passed on.
	Username string `config:"username"`
	// Password for Basic authentication.
	Password configfile.Secret `config:"password"`
	// Headers to set in each request, for example a token that a gateway requires.
	Headers map[string]configfile.Secret `config:"headers"`
	// Time that answers which concern both wait for the existing Clouddriver, and for memory. After it, they are an error
	// that Spinnaker retries, or have the last complete answer of the existing Clouddriver. Spinnaker's services wait
	// for 20 s by default.
	MergeTimeout time.Duration `config:"mergeTimeout" default:"15s" minimum:"100ms"`
	// How often the accounts and applications of the existing Clouddriver are read. It is asked only about what it may have.
	RefreshInterval time.Duration `config:"refreshInterval" default:"30s" minimum:"100ms"`
	// How old the last complete answer of the existing Clouddriver may be where it stands for the current one: in lists of
	// accounts, applications, artifact accounts and stages.
	MaxStale time.Duration `config:"maxStale" default:"24h" minimum:"100ms"`
	// Whether searches and clusters of projects, at which people look, come without the part of the existing Clouddriver if it
	// does not answer. They have the header X-Vedette-Incomplete then. Otherwise they are an error.
	Partial bool `config:"partial"`
	// Time after which an answer that is passed on must begin, and for which it may pause.
	Timeout time.Duration `config:"timeout" default:"1m" minimum:"100ms"`
	// Memory for all answers that are being merged, which are compressed meanwhile, and for tasks of the existing Clouddriver
	// that are followed. An answer waits for memory until mergeTimeout.
	MergeBytes int64 `config:"mergeBytes" format:"bytes" default:"128MiB" minimum:"1MiB"`

	TLS *tls.Config // for https; nil means Go's default
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
	case c.Password.Reveal() != "" && c.Username == "":
		return vedette.Errorf(vedette.Invalid, "the upstream Clouddriver has a password, but no user")
	}
	return c.validateHeaders()
}

func (c *Config) validateHeaders() error {
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) { // the same error each time
		if !isToken(name) || strings.ContainsFunc(c.Headers[name].Reveal(), isControl) {
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
	c = configfile.WithDefaults(c)
	if c.Missing == nil {
		c.Missing = func(context.Context, vedette.AccountName) string { return "not all of it is stored yet" }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
