package authorize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/answer"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/internal/textcheck"
)

// FiatConfig configures requests to Fiat, Spinnaker's authorization service. Numbers that are zero have the defaults of
// their tags, which are Clouddriver's.
type FiatConfig struct {
	// URL of Fiat, for example http://spin-fiat:7003. Required if enabled.
	BaseURL string `config:"baseUrl"`
	// If Fiat does not answer, allow requests to use the accounts that they name in X-SPINNAKER-ACCOUNTS, and
	// all applications. If false, they are denied.
	LegacyFallback bool `config:"legacyFallback" default:"false"`
	// Cache of users' permissions.
	Cache FiatCache `config:"cache"`
	// Retries of requests to Fiat.
	Retry FiatRetry `config:"retry"`

	Transport http.RoundTripper // nil means Go's default
}

// FiatCache configures the cache of users' permissions.
type FiatCache struct {
	// Maximum number of users whose permissions are cached.
	MaxEntries int `config:"maxEntries" default:"1000" minimum:"1"`
	// Time for which permissions are cached, in seconds. A user whose roles change keeps the old permissions for this time.
	TTL time.Duration `config:"expiresAfterWriteSeconds" format:"seconds" default:"20" minimum:"1"`
}

// FiatRetry configures retries of requests to Fiat.
type FiatRetry struct {
	// Time after which the server stops trying and denies the request, in milliseconds.
	MaxElapsed time.Duration `config:"maxBackoffMillis" format:"milliseconds" default:"10000" minimum:"1"`
	// Pause after the first failure, in milliseconds.
	InitialInterval time.Duration `config:"initialBackoffMillis" format:"milliseconds" default:"500" minimum:"1"`
	// Factor between two pauses.
	Multiplier float64 `config:"retryMultiplier" default:"1.5" minimum:"1"`
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
	}
	return nil
}

func (f FiatConfig) withDefaults() FiatConfig {
	f.BaseURL = strings.TrimRight(f.BaseURL, "/")
	return configfile.WithDefaults(f)
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

// fetch requests the permissions of a caller. It retries until Retry.MaxElapsed. An answer about the
// request itself, for example that Fiat does not know the user, is final.
func (f *fiatClient) fetch(ctx context.Context, c Caller) (*permissions, error) {
	ctx, cancel := context.WithTimeout(ctx, f.Retry.MaxElapsed)
	defer cancel()
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.Multiplier = f.Retry.InitialInterval, f.Retry.Multiplier
	wait.MaxInterval, wait.RandomizationFactor = f.Retry.MaxElapsed, 0
	return backoff.Retry(ctx, func() (*permissions, error) { return f.fetchOnce(ctx, c) },
		backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(f.Retry.MaxElapsed))
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
	maps.Copy(request.Header, c.Header)
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
