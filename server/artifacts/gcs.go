package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// GCSAccount fetches objects of Google Cloud Storage.
type GCSAccount struct {
	Name string
	// JSONPath is a file with the key of a service account. Empty means the credentials of the
	// environment, the user or the machine.
	JSONPath string
	// Endpoint replaces https://storage.googleapis.com.
	Endpoint string
}

const gcsScope = "https://www.googleapis.com/auth/devstorage.read_only"

func (a GCSAccount) source(client *egress.Client) source {
	if a.Endpoint == "" {
		a.Endpoint = "https://storage.googleapis.com"
	}
	c := &gcsClient{account: a, client: client}
	return bucketSource{Account: Account{a.Name, []string{"gcs/object"}, "artifacts-gcs"}, scheme: "gs://", open: c.open}
}

type gcsClient struct {
	account GCSAccount
	client  *egress.Client

	mu     sync.Mutex
	tokens oauth2.TokenSource
}

func (c *gcsClient) open(ctx context.Context, o bucketObject) (io.ReadCloser, error) {
	u, err := c.locate(o.splitVersion())
	if err != nil {
		return nil, err
	}
	token, err := c.token(ctx)
	if err != nil {
		return nil, err
	}
	body, err := c.client.Get(ctx, egress.Request{URL: u, Header: http.Header{"Authorization": {"Bearer " + token}}})
	var status *egress.StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound {
		return nil, vedette.Errorf(vedette.NotFound, "gs://%.300s/%.300s not found", o.bucket, o.path)
	}
	return body, err
}

// locate returns the URL of an object's content in the JSON API.
func (c *gcsClient) locate(o bucketObject) (*url.URL, error) {
	base, err := url.Parse(c.account.Endpoint)
	if err != nil || base.Host == "" {
		return nil, errors.New("the account's endpoint is not a URL")
	}
	u, err := withEscapedPath(base, "/storage/v1/b/"+o.bucket+"/o/"+url.PathEscape(o.path))
	if err != nil {
		return nil, err
	}
	query := url.Values{"alt": {"media"}}
	if o.version != "" {
		if _, err := strconv.ParseInt(o.version, 10, 64); err != nil {
			return nil, vedette.Errorf(vedette.Invalid, "the part of the reference after # must be the number of a generation, got %.30q", o.version)
		}
		query.Set("generation", o.version)
	}
	u.RawQuery = query.Encode()
	return u, nil
}

// token returns an access token. Tokens are kept until they expire. The services that issue them
// are named by the operator's files, so that no policy applies to their addresses.
func (c *gcsClient) token(ctx context.Context) (string, error) {
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
		return "", fmt.Errorf("get an access token of Google Cloud: %w", err)
	}
	return token.AccessToken, nil
}

func (c *gcsClient) credentials(ctx context.Context) (*google.Credentials, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: c.client.Limits().StallTimeout})
	if c.account.JSONPath == "" {
		credentials, err := google.FindDefaultCredentials(ctx, gcsScope)
		if err != nil {
			return nil, fmt.Errorf("find credentials for Google Cloud Storage: %w", err)
		}
		return credentials, nil
	}
	key, err := readFile(c.account.JSONPath)
	if err != nil {
		return nil, err
	}
	//nolint:staticcheck // it warns of files from others, and this one is the operator's
	credentials, err := google.CredentialsFromJSONWithParams(ctx, key, google.CredentialsParams{Scopes: []string{gcsScope}})
	if err != nil {
		return nil, fmt.Errorf("the file %s is not a key of a service account: %w", c.account.JSONPath, err)
	}
	return credentials, nil
}
