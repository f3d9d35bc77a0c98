package artifacts

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/bucket"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// S3Account fetches objects of S3, or of a service with the same API.
type S3Account struct {
	Name string
	// Endpoint is the URL of a service with the API of S3. Empty means AWS.
	Endpoint string
	// Region defaults to that of the environment, and then to us-east-1.
	Region string
	// AccessKeyID and SecretKey are those of an account. If they are empty, they come from the
	// environment, ~/.aws, the pod's service account or the machine's role, as in other programs
	// for AWS.
	AccessKeyID string
	SecretKey   Credential
	// Profile selects a profile of ~/.aws; empty means the default.
	Profile string
	// Anonymous sends requests without a signature.
	Anonymous bool
	// VirtualHosts puts the bucket into the name of the host though Endpoint is set.
	VirtualHosts bool
}

func (a S3Account) source(client *egress.Client) source {
	c := newS3Client(a, client)
	return bucketSource{Account: Account{a.Name, []string{"s3/object"}, "artifacts-s3"}, scheme: "s3://", open: c.open}
}

// s3Client sends signed requests.
type s3Client struct {
	s3     *bucket.S3
	client *egress.Client
}

func newS3Client(a S3Account, client *egress.Client) *s3Client {
	return &s3Client{client: client, s3: bucket.NewS3(bucket.S3Config{
		Endpoint: a.Endpoint, Region: a.Region, AccessKeyID: a.AccessKeyID, SecretKey: a.SecretKey,
		Profile: a.Profile, Anonymous: a.Anonymous, VirtualHosts: a.VirtualHosts,
	})}
}

func (c *s3Client) open(ctx context.Context, o bucket.Object) (io.ReadCloser, error) {
	body, err := c.get(ctx, o, "")
	var status *egress.StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound {
		return nil, vedette.Errorf(vedette.NotFound, "s3://%.300s/%.300s not found", o.Bucket, o.Path)
	}
	return body, err
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
