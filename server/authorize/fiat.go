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

// FiatConfig is Spinnaker's service that knows what users may do, and how it is asked.
// Zero durations and numbers mean what Clouddriver has.
type FiatConfig struct {
	BaseURL string // "http://spin-fiat:7003"

	CacheTTL  time.Duration // how long an answer counts; 20 s
	CacheSize int           // how many users' answers are kept; 1000

	RetryInitialInterval time.Duration // wait after the first failure; 500 ms
	RetryMultiplier      float64       // by which each further wait is longer; 1.5
	RetryMaxElapsed      time.Duration // after which it is given up; 10 s

	// LegacyFallback lets a caller whom Fiat can't be asked about use the accounts
	// that Caller.Accounts names, and every application.
	LegacyFallback bool

	Transport http.RoundTripper // nil: Go's own
}

// attemptTimeout is how long one question may take. What hangs is asked again.
const attemptTimeout = 4 * time.Second

// Validate says what is wrong with it.
func (f *FiatConfig) Validate() error {
	base, err := url.Parse(f.BaseURL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return vedette.Errorf(vedette.Invalid, "the address of Fiat must be a URL such as http://spin-fiat:7003, and is %q", f.BaseURL)
	case base.RawQuery != "" || base.Fragment != "":
		return vedette.Errorf(vedette.Invalid, "the address of Fiat must end with its host or a path, and is %q", f.BaseURL)
	case f.RetryMultiplier != 0 && f.RetryMultiplier < 1:
		return vedette.Errorf(vedette.Invalid, "waits for Fiat must not become shorter: the factor is %g and must be 1 or more", f.RetryMultiplier)
	case f.CacheTTL < 0 || f.CacheSize < 0 || f.RetryInitialInterval < 0 || f.RetryMaxElapsed < 0:
		return vedette.Errorf(vedette.Invalid, "times and numbers for asking Fiat must not be negative")
	}
	return nil
}

func (f FiatConfig) withDefaults() FiatConfig {
	f.BaseURL = strings.TrimRight(f.BaseURL, "/")
	f.CacheTTL = orDefault(f.CacheTTL, 20*time.Second)
	f.CacheSize = orDefault(f.CacheSize, 1000)
	f.RetryInitialInterval = orDefault(f.RetryInitialInterval, 500*time.Millisecond)
	f.RetryMultiplier = orDefault(f.RetryMultiplier, 1.5)
	f.RetryMaxElapsed = orDefault(f.RetryMaxElapsed, 10*time.Second)
	return f
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// fiatClient asks.
type fiatClient struct {
	FiatConfig
	client *http.Client
}

func newFiatClient(cfg FiatConfig) *fiatClient {
	return &fiatClient{cfg, &http.Client{
		Transport: cfg.Transport,
		// A page to log in at is no answer.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// fetch asks until there is an answer, or until it is given up. What Fiat says of
// the question itself (that it does not know the user, for one) is final.
func (f *fiatClient) fetch(ctx context.Context, c Caller) (*permissions, error) {
	ctx, cancel := context.WithTimeout(ctx, f.RetryMaxElapsed)
	defer cancel()
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.Multiplier, wait.MaxInterval, wait.RandomizationFactor = f.RetryInitialInterval, f.RetryMultiplier, f.RetryMaxElapsed, 0
	return backoff.Retry(ctx, func() (*permissions, error) { return f.fetchOnce(ctx, c) },
		backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(f.RetryMaxElapsed))
}

func (f *fiatClient) fetchOnce(ctx context.Context, c Caller) (*permissions, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	request, err := f.newRequest(ctx, c)
	if err != nil {
		return nil, backoff.Permanent(&finalError{err})
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask Fiat about %s: %w", c.User, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, statusError(c, response)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
	if err != nil {
		return nil, fmt.Errorf("read what Fiat says of %s: %w", c.User, err)
	}
	var parsed fiatResponse
	if err := json.Unmarshal(body, &parsed); err != nil {
		return nil, fmt.Errorf("read what Fiat says of %s: %w", c.User, err)
	}
	return parsed.permissions(), nil
}

// maxResponseBytes is far above what the user with the most applications has.
const maxResponseBytes = 64 << 20

func (f *fiatClient) newRequest(ctx context.Context, c Caller) (*http.Request, error) {
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

// finalError is an answer that asking again would not change.
type finalError struct{ error }

// statusError says what an answer that is no success means.
func statusError(c Caller, response *http.Response) error {
	message, _ := io.ReadAll(io.LimitReader(response.Body, 300)) // for the log: what came is enough
	err := fmt.Errorf("ask Fiat about %s: it answered %s: %s", c.User, response.Status, strings.TrimSpace(string(message)))
	switch code := response.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return err
	}
	return backoff.Permanent(&finalError{err})
}
