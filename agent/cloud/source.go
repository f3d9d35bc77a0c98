package cloud

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/vedette-io/vedette/internal/mask"
)

// Token is what an API server accepts as a bearer token.
type Token struct {
	Value   string
	Expires time.Time // zero if unknown
}

// timeout is how long all requests for one token may take together.
const timeout = 30 * time.Second

// Source gets tokens for one cluster. It is safe for concurrent use.
type Source struct {
	name    string // of the cluster in its cloud, for example "EKS cluster prod in eu-west-1"
	service string // who issues the tokens, until a request names it
	page    string // of the documentation that lists errors
	// Rejected says why the API server may not accept a token that is valid.
	rejected string
	// noIdentity says what is missing if a metadata service, which is the last place to look for an identity, gives none.
	noIdentity string
	issue      func(ctx context.Context, client *http.Client) (Token, error)
}

// String names the cluster in its cloud.
func (s *Source) String() string { return s.name }

// Rejected says why an API server may reject a token that its cloud has issued, and what to do.
func (s *Source) Rejected() string { return s.rejected }

// Token gets a new token. It returns when ctx ends, or after half a minute, even if a file or a service does not answer.
func (s *Source) Token(ctx context.Context) (Token, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	x := &exchange{ctx: ctx, next: services}
	type result struct {
		token Token
		err   error
	}
	done := make(chan result, 1)
	go func() { // left behind if a library reads a file that does not answer
		token, err := s.issue(ctx, x.client())
		done <- result{token, err}
	}()
	select {
	case r := <-done:
		if r.err == nil {
			r.err = r.token.check()
		}
		if r.err != nil {
			return Token{}, s.explain(ctx, x, r.err)
		}
		return r.token, nil
	case <-ctx.Done():
		return Token{}, s.explain(ctx, x, ctx.Err())
	}
}

// maxTokenBytes is less than API servers accept in all headers together.
const maxTokenBytes = 64 << 10

// check returns an error if a token cannot be sent in a header. It does not quote the token.
func (t Token) check() error {
	switch i := strings.IndexFunc(t.Value, func(r rune) bool { return r <= ' ' || r > '~' }); {
	case t.Value == "":
		return errors.New("the answer has no token")
	case len(t.Value) > maxTokenBytes:
		return fmt.Errorf("the token has %d bytes, and API servers accept no more than %d", len(t.Value), maxTokenBytes)
	case i >= 0:
		return fmt.Errorf("the token has a character at byte %d that cannot be sent in a header", i)
	}
	return nil
}

// explain says which service did not issue a token, why, and what to do.
func (s *Source) explain(ctx context.Context, x *exchange, err error) error {
	host, failure := x.last()
	service := s.service
	if host != "" {
		service += " (" + host + ")"
	}
	if setup, ok := errors.AsType[*setupError](err); ok {
		return fmt.Errorf("%s: %w", s.name, setup)
	}
	if failure != nil {
		err = failure
	}
	answer, _ := errors.AsType[*answerError](err)
	var dnsErr *net.DNSError
	switch {
	case s.noIdentity != "" && isMetadataService(host) && (answer == nil || answer.skew == 0):
		return fmt.Errorf("%s: %s: %w: see %s", s.name, s.noIdentity, x.mask(err), s.page)
	case answer != nil:
		return fmt.Errorf("%s: %s %w: %s", s.name, service, answer, s.advice(answer))
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s: %s did not answer within %v: check firewalls, proxies and NetworkPolicies on the way (%w)", s.name, service, timeout, ctx.Err())
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", s.name, context.Cause(ctx))
	case isProxyError(err):
		return fmt.Errorf("%s: the proxy on the way to %s cannot be reached: check HTTPS_PROXY and NO_PROXY: %w", s.name, service, x.mask(err))
	case errors.As(err, &dnsErr):
		return fmt.Errorf("%s: the name of %s cannot be resolved: check this machine's DNS: %w", s.name, service, x.mask(err))
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w: see %s", s.name, x.mask(err), s.page)
	}
	return fmt.Errorf("%s: %s issued no token: %w: see %s", s.name, service, x.mask(err), s.page)
}

// isProxyError reports whether no connection to a proxy came about.
func isProxyError(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "proxyconnect"
}

// advice says what to do about the answer of a service.
func (s *Source) advice(e *answerError) string {
	switch {
	case e.skew != 0:
		return "set this machine's clock, which is " + describeSkew(e.skew) + " that of the service"
	case e.status >= 500 || e.status == http.StatusTooManyRequests:
		return "the agent asks again"
	case e.status == 0 || e.status < 400:
		return "check proxies on the way, and the address"
	}
	return "see " + s.page
}

// setupError is about what the operator has configured, and is complete.
type setupError struct{ text string }

func (e *setupError) Error() string { return e.text }

func setupErrorf(format string, args ...any) error { return &setupError{fmt.Sprintf(format, args...)} }

// maskedError is the error of a library without what services were sent or answered.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }

// Is makes errors.Is work, while the texts of the chain stay hidden.
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }

const maxErrorBytes = 400

func (x *exchange) mask(err error) error {
	x.mu.Lock()
	secrets := mask.TextValues(x.secrets)
	x.mu.Unlock()
	return &maskedError{cut(secrets.Mask(mask.URLs(err.Error())), maxErrorBytes), err}
}

// cut returns a text in one line, as valid UTF-8, with a limited number of bytes.
func cut(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, text)
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
