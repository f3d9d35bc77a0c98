package authorize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/answer"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/internal/textcheck"
)

// FiatConfig configures requests to Fiat, Spinnaker's authorization service. Zero values mean
// Clouddriver's defaults, given at each field.
type FiatConfig struct {
	BaseURL string // for example "http://spin-fiat:7003"

	CacheTTL  time.Duration // how long an answer is cached; 20 s
	CacheSize int           // how many users are cached; 1000

	RetryInitialInterval time.Duration // wait after the first failure; 500 ms
	RetryMultiplier      float64       // factor between two waits; 1.5
	RetryMaxElapsed      time.Duration // total time before giving up; 10 s

	// LegacyFallback allows callers the accounts in Caller.Accounts, and all applications, if Fiat
	// is unreachable.
	LegacyFallback bool

	Transport http.RoundTripper // nil means Go's default
}

// attemptTimeout limits one request. A request that takes longer is retried.
const attemptTimeout = 4 * time.Second

// Validate checks the configuration.
func (f *FiatConfig) Validate() error {
	base, err := url.Parse(f.BaseURL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return vedette.Errorf(vedette.Invalid, "the address of Fiat must be a URL like http://spin-fiat:7003, got %q", f.BaseURL)
	case base.RawQuery != "" || base.Fragment != "":
		return vedette.Errorf(vedette.Invalid, "the address of Fiat must not have a query or a fragment, got %q", f.BaseURL)
	case f.RetryMultiplier != 0 && f.RetryMultiplier < 1:
		return vedette.Errorf(vedette.Invalid, "the retry multiplier for Fiat must be 1 or more, got %g", f.RetryMultiplier)
	case f.CacheTTL < 0 || f.CacheSize < 0 || f.RetryInitialInterval < 0 || f.RetryMaxElapsed < 0:
		return vedette.Errorf(vedette.Invalid, "the durations and sizes for Fiat must not be negative")
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

// The limits of Fiat's answers. 10,000 applications of a user have about 600 KB, and become 9 MiB at most.
const (
	maxResponseBytes    = 8 << 20  // of one answer
	maxPermissionsBytes = 64 << 20 // what one answer may take in memory
	// maxAnswersBytes is what all answers may take while they are read and decoded. Callers choose users, and so
	// how many answers there are at once.
	maxAnswersBytes = 96 << 20
	// maxCachedBytes is what all cached permissions may take.
	maxCachedBytes = 48 << 20
	memoryTimeout  = 4 * time.Second // how long an answer waits for memory
)

// fiatClient sends requests to Fiat.
type fiatClient struct {
	FiatConfig
	client  *http.Client
	answers *answer.Reader
}

func newFiatClient(cfg FiatConfig) *fiatClient {
	return &fiatClient{FiatConfig: cfg, answers: answer.NewReader(answer.Config{Service: "Fiat", TextBytes: maxResponseBytes,
		DecodedBytes: maxPermissionsBytes, Bytes: maxAnswersBytes, Wait: memoryTimeout}), client: &http.Client{
		Transport: cfg.Transport,
		// A redirect, for example to a login page, is not an answer.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// fetch requests the permissions of a caller. It retries until RetryMaxElapsed. An answer about the
// request itself, for example that Fiat does not know the user, is final.
func (f *fiatClient) fetch(ctx context.Context, c Caller) (*permissions, error) {
	ctx, cancel := context.WithTimeout(ctx, f.RetryMaxElapsed)
	defer cancel()
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.Multiplier, wait.MaxInterval, wait.RandomizationFactor = f.RetryInitialInterval, f.RetryMultiplier,
		f.RetryMaxElapsed, 0
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
		return nil, fmt.Errorf("request the permissions of %s from Fiat: %w", c.User, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, statusError(c, response)
	}
	memory := f.answers.Begin(c.User)
	defer memory.Release()
	var parsed fiatResponse
	err = memory.Read(ctx, response.Body, &parsed)
	if _, ok := errors.AsType[*answer.TooLongError](err); ok {
		return nil, backoff.Permanent(&finalError{fmt.Errorf("read Fiat's answer about %s: %w", c.User, err)})
	}
	if err != nil {
		return nil, fmt.Errorf("read Fiat's answer about %s: %w", c.User, err)
	}
	return parsed.permissions(), nil
}

func (f *fiatClient) newRequest(ctx context.Context, c Caller) (*http.Request, error) {
	if !textcheck.IsPathSegment(c.User) {
		return nil, vedette.Errorf(vedette.Invalid, "%q is not a valid user: it would change the path of the request to Fiat", c.User)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.BaseURL+"/authorize/"+url.PathEscape(c.User), nil)
	if err != nil {
		return nil, fmt.Errorf("request the permissions of %s from Fiat: %w", c.User, err)
	}
	for name, values := range c.Header {
		request.Header[name] = values
	}
	request.Header.Set(headerPrefix+"User", c.User)
	request.Header.Set("Accept", "application/json")
	requestid.SetHeader(ctx, request.Header)
	return request, nil
}

// finalError wraps an error that retrying would not fix.
type finalError struct{ error }

// statusError returns the error for a response that is not a success.
func statusError(c Caller, response *http.Response) error {
	message, _ := io.ReadAll(io.LimitReader(response.Body, 300)) // for the log; what was read is enough
	err := fmt.Errorf("request the permissions of %s from Fiat: got %s: %s", c.User, response.Status, strings.TrimSpace(string(message)))
	switch code := response.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return err
	}
	return backoff.Permanent(&finalError{err})
}
