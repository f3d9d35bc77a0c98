package authorize

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
)

// Fiat is Spinnaker's service that knows what users may do, and how it is asked.
// Zero durations and numbers mean what Clouddriver has.
type Fiat struct {
	BaseURL string // "http://spin-fiat:7003"

	CacheAge   time.Duration // how long an answer counts; 20 s
	CacheUsers int           // how many users' answers are kept; 1000

	RetryFirst  time.Duration // wait after the first failure; 500 ms
	RetryFactor float64       // by which each further wait is longer; 1.5
	RetryFor    time.Duration // after which it is given up; 10 s

	// LegacyFallback lets a caller whom Fiat can't be asked about use the accounts
	// that Caller.Accounts names, and every application.
	LegacyFallback bool

	Transport http.RoundTripper // nil: Go's own
}

// attempt is how long one question may take. What hangs is asked again.
const attempt = 4 * time.Second

// Validate says what is wrong with it.
func (f *Fiat) Validate() error {
	base, err := url.Parse(f.BaseURL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return vedette.Errorf(vedette.Invalid, "the address of Fiat must be a URL such as http://spin-fiat:7003, and is %q", f.BaseURL)
	case base.RawQuery != "" || base.Fragment != "":
		return vedette.Errorf(vedette.Invalid, "the address of Fiat must end with its host or a path, and is %q", f.BaseURL)
	case f.RetryFactor != 0 && f.RetryFactor < 1:
		return vedette.Errorf(vedette.Invalid, "waits for Fiat must not become shorter: the factor is %g and must be 1 or more", f.RetryFactor)
	case f.CacheAge < 0 || f.CacheUsers < 0 || f.RetryFirst < 0 || f.RetryFor < 0:
		return vedette.Errorf(vedette.Invalid, "times and numbers for asking Fiat must not be negative")
	}
	return nil
}

func (f Fiat) withDefaults() Fiat {
	f.BaseURL = strings.TrimRight(f.BaseURL, "/")
	f.CacheAge = or(f.CacheAge, 20*time.Second)
	f.CacheUsers = or(f.CacheUsers, 1000)
	f.RetryFirst = or(f.RetryFirst, 500*time.Millisecond)
	f.RetryFactor = or(f.RetryFactor, 1.5)
	f.RetryFor = or(f.RetryFor, 10*time.Second)
	return f
}

func or[T comparable](value, instead T) T {
	var zero T
	if value == zero {
		return instead
	}
	return value
}

// fiat asks.
type fiat struct {
	Fiat
	client *http.Client
}

func newFiat(cfg Fiat) *fiat {
	return &fiat{cfg, &http.Client{
		Transport: cfg.Transport,
		// A page to log in at is no answer.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ask asks until there is an answer, or until it is given up. What Fiat says of
// the question itself (that it does not know the user, for one) is final.
func (f *fiat) ask(ctx context.Context, c Caller) (*permissions, error) {
	ctx, cancel := context.WithTimeout(ctx, f.RetryFor)
	defer cancel()
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.Multiplier, wait.MaxInterval, wait.RandomizationFactor = f.RetryFirst, f.RetryFactor, f.RetryFor, 0
	return backoff.Retry(ctx, func() (*permissions, error) { return f.askOnce(ctx, c) },
		backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(f.RetryFor))
}

func (f *fiat) askOnce(ctx context.Context, c Caller) (*permissions, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	request, err := f.request(ctx, c)
	if err != nil {
		return nil, backoff.Permanent(&refusal{err})
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask Fiat about %s: %w", c.User, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, refused(c, response)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxView))
	if err != nil {
		return nil, fmt.Errorf("read what Fiat says of %s: %w", c.User, err)
	}
	var v view
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, fmt.Errorf("read what Fiat says of %s: %w", c.User, err)
	}
	return v.permissions(), nil
}

// maxView is far above what the user with the most applications has.
const maxView = 64 << 20

func (f *fiat) request(ctx context.Context, c Caller) (*http.Request, error) {
	if c.User == "." || c.User == ".." {
		return nil, vedette.Errorf(vedette.Invalid, "%q is no user: it would mean another path at Fiat", c.User)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.BaseURL+"/authorize/"+url.PathEscape(c.User), nil)
	if err != nil {
		return nil, fmt.Errorf("ask Fiat about %s: %w", c.User, err)
	}
	for name, values := range c.Header {
		request.Header[name] = values
	}
	request.Header.Set(headerPrefix+"User", c.User)
	request.Header.Set("Accept", "application/json")
	return request, nil
}

// refusal is an answer that asking again would not change.
type refusal struct{ error }

// refused says what an answer that is no success means.
func refused(c Caller, response *http.Response) error {
	said, _ := io.ReadAll(io.LimitReader(response.Body, 300)) // for the log: what came is enough
	err := fmt.Errorf("ask Fiat about %s: it answered %s: %s", c.User, response.Status, strings.TrimSpace(string(said)))
	switch code := response.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return err
	}
	return backoff.Permanent(&refusal{err})
}
