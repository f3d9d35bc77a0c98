package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/vedette-io/vedette"
)

// GCSConfig selects Google Cloud Storage, or a service with the same API, and the credentials for it.
type GCSConfig struct {
	// Endpoint replaces https://storage.googleapis.com if it is not empty.
	Endpoint string
	// Key returns the key of a service account, and KeyPath is the name of the file with it, for
	// messages. If Key is nil, the credentials are those of the environment, the user or the machine.
	Key     func() ([]byte, error)
	KeyPath string
	// Timeout limits a request for a token.
	Timeout time.Duration
}

// DefaultGCSEndpoint is the URL of Google Cloud Storage.
const DefaultGCSEndpoint = "https://storage.googleapis.com"

const gcsScope = "https://www.googleapis.com/auth/devstorage.read_only"

// GCS locates objects, and gets access tokens for them.
type GCS struct {
	config GCSConfig

	mu     sync.Mutex
	tokens oauth2.TokenSource
}

// NewGCS returns a GCS. It does no I/O.
func NewGCS(cfg GCSConfig) *GCS {
	if cfg.Endpoint == "" {
		cfg.Endpoint = DefaultGCSEndpoint
	}
	return &GCS{config: cfg}
}

// Locate returns the URL of an object's content in the JSON API.
func (c *GCS) Locate(o Object) (*url.URL, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	base, err := url.Parse(c.config.Endpoint)
	if err != nil || base.Host == "" {
		return nil, errors.New("the endpoint is not a URL")
	}
	u, err := WithEscapedPath(base, "/storage/v1/b/"+o.Bucket+"/o/"+url.PathEscape(o.Path))
	if err != nil {
		return nil, err
	}
	query := url.Values{"alt": {"media"}}
	if o.Version != "" {
		if _, err := strconv.ParseInt(o.Version, 10, 64); err != nil {
			return nil, vedette.Errorf(vedette.Invalid, "the part of the reference after # must be the number of a generation, got %.30q", o.Version)
		}
		query.Set("generation", o.Version)
	}
	u.RawQuery = query.Encode()
	return u, nil
}

// Token returns an access token. Tokens are kept until they expire. The services that issue them
// are named by the operator's files, so that no policy applies to their addresses.
func (c *GCS) Token(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens == nil {
		// The source of tokens outlives the request that asks for it first.
		credentials, err := c.credentials(context.WithoutCancel(ctx))
		if err != nil {
			return "", err
		}
		c.tokens = credentials.TokenSource
	}
	token, err := c.tokens.Token()
	if err != nil {
		c.tokens = nil // the file with the key may be replaced
		return "", fmt.Errorf("get an access token of Google Cloud: %w", withoutBody(err))
	}
	return token.AccessToken, nil
}

// withoutBody returns an error of a token endpoint without the body of the answer, which may be a page,
// or quote the request with what identifies the account.
func withoutBody(err error) error {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) || answer.Response == nil {
		return err
	}
	r := answer.Response
	return fmt.Errorf("%s answered with status %s, error code %.100q", r.Request.URL.Host, r.Status, answer.ErrorCode)
}

func (c *GCS) credentials(ctx context.Context) (*google.Credentials, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: c.config.Timeout})
	if c.config.Key == nil {
		credentials, err := google.FindDefaultCredentials(ctx, gcsScope)
		if err != nil {
			return nil, fmt.Errorf("find credentials for Google Cloud Storage: %w", err)
		}
		return credentials, nil
	}
	key, err := c.config.Key()
	if err != nil {
		return nil, err
	}
	//nolint:staticcheck // it warns of files from others, and this one is the operator's
	credentials, err := google.CredentialsFromJSONWithParams(ctx, key, google.CredentialsParams{Scopes: []string{gcsScope}})
	if err != nil {
		return nil, fmt.Errorf("the file %s is not a key of a service account: %w", c.config.KeyPath, err)
	}
	return credentials, nil
}
