package artifacts

import (
	"cmp"
	"context"
	"io"
	"net/http"

	"github.com/vedette-io/vedette/internal/bucket"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/notfound"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// S3Account is an account of S3 or of a service with the same API. Without an access key, requests have the credentials of the
// environment, ~/.aws, the pod's service account or the machine's role, as in other programs for AWS.
type S3Account struct {
	// Name of the account.
	Name string `config:"name"`
	// URL of a service with the API of S3. Default: that of AWS.
	Endpoint string `config:"apiEndpoint"`
	// Region, with apiEndpoint.
	EndpointRegion string `config:"apiRegion"`
	// Region, without apiEndpoint. Default: that of the environment.
	Region string `config:"region"`
	// Access key. Default: credentials of the environment, ~/.aws, the pod's service account or the machine.
	AccessKeyID string `config:"awsAccessKeyId"`
	// Secret of the access key.
	SecretKey configfile.Secret `config:"awsSecretAccessKey"`
	// Requests have signatures of version 4.
	SignerOverride string `config:"signerOverride,ignored"`
}

func (a S3Account) bucketConfig() bucket.S3Config {
	cfg := bucket.S3Config{Endpoint: a.Endpoint, Region: a.Region, AccessKeyID: a.AccessKeyID, SecretKey: text(a.SecretKey)}
	if a.Endpoint != "" {
		cfg.Region = cmp.Or(a.EndpointRegion, a.Region)
	}
	return cfg
}

func (a S3Account) fetcher(client *egress.Client) fetcher {
	c := &s3Client{s3: bucket.NewS3(a.bucketConfig()), client: client}
	return bucketFetcher{Account: Account{a.Name, []string{"s3/object"}, "artifacts-s3"}, scheme: "s3://", open: c.open}
}

// s3Client sends signed requests.
type s3Client struct {
	s3     *bucket.S3
	client *egress.Client
}

func (c *s3Client) open(ctx context.Context, o bucket.Object) (io.ReadCloser, error) {
	body, err := c.get(ctx, o, "")
	return body, asNotFound(err, notfound.S3, "s3://%.300s/%.300s not found", o.Bucket, o.Path)
}

// get requests an object, or what a query says of it.
func (c *s3Client) get(ctx context.Context, o bucket.Object, query string) (io.ReadCloser, error) {
	if err := c.s3.Load(ctx); err != nil {
		return nil, err
	}
	u, err := c.s3.Locate(o)
	if err != nil {
		return nil, err
	}
	u.RawQuery = query
	return c.client.Get(ctx, egress.Request{URL: u, Sign: func(r *http.Request) error { return c.s3.Sign(ctx, r) }})
}
