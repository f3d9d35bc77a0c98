package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/vedette-io/vedette"
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
	config S3Account
	client *egress.Client
	signer *v4.Signer

	mu          sync.Mutex
	credentials aws.CredentialsProvider
	region      string
}

func newS3Client(a S3Account, client *egress.Client) *s3Client {
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }) // S3 escapes once
	return &s3Client{config: a, client: client, signer: signer, region: a.Region}
}

func (c *s3Client) open(ctx context.Context, o bucketObject) (io.ReadCloser, error) {
	body, err := c.get(ctx, o, "")
	var status *egress.StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound {
		return nil, vedette.Errorf(vedette.NotFound, "s3://%.300s/%.300s not found", o.bucket, o.path)
	}
	return body, err
}

// get requests an object, or what a query says of it.
func (c *s3Client) get(ctx context.Context, o bucketObject, query string) (io.ReadCloser, error) {
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	u, err := c.locate(o)
	if err != nil {
		return nil, err
	}
	u.RawQuery = query
	return c.client.Get(ctx, egress.Request{URL: u, Sign: func(r *http.Request) error { return c.sign(ctx, r) }})
}

// load finds out the credentials and the region when they are needed first, because they may be
// questions to a metadata service, and a start must not depend on that.
func (c *s3Client) load(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.region != "" && (c.credentials != nil || c.config.Anonymous) {
		return nil
	}
	var options []func(*awsconfig.LoadOptions) error
	if c.config.Profile != "" {
		options = append(options, awsconfig.WithSharedConfigProfile(c.config.Profile))
	}
	// The credentials outlive the request that asks for them first.
	loaded, err := awsconfig.LoadDefaultConfig(context.WithoutCancel(ctx), options...)
	if err != nil {
		return fmt.Errorf("load the configuration of AWS: %w", err)
	}
	if c.region == "" {
		c.region = loaded.Region
	}
	if c.region == "" {
		c.region = "us-east-1"
	}
	c.credentials = loaded.Credentials
	if c.config.AccessKeyID != "" {
		c.credentials = aws.CredentialsProviderFunc(c.static)
	}
	return nil
}

func (c *s3Client) static(context.Context) (aws.Credentials, error) {
	if c.config.SecretKey == nil {
		return aws.Credentials{}, errors.New("the account has an access key ID and no secret access key")
	}
	secret, err := c.config.SecretKey()
	return aws.Credentials{AccessKeyID: c.config.AccessKeyID, SecretAccessKey: secret}, err
}

// locate returns the URL of an object. Certificates of S3 do not cover buckets with dots in their
// names as hosts.
func (c *s3Client) locate(o bucketObject) (*url.URL, error) {
	base := &url.URL{Scheme: "https", Host: "s3." + c.region + ".amazonaws.com"}
	if strings.HasPrefix(c.region, "cn-") {
		base.Host += ".cn"
	}
	virtual := !strings.Contains(o.bucket, ".")
	if c.config.Endpoint != "" {
		var err error
		if base, err = url.Parse(strings.TrimSuffix(c.config.Endpoint, "/")); err != nil || base.Host == "" {
			return nil, errors.New("the account's endpoint is not a URL")
		}
		virtual = c.config.VirtualHosts
	}
	path := base.EscapedPath() + "/" + escapePath(o.path)
	if virtual {
		base.Host = o.bucket + "." + base.Host
	} else {
		path = base.EscapedPath() + "/" + o.bucket + "/" + escapePath(o.path)
	}
	return withEscapedPath(base, path)
}

const emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// sign adds the signature of AWS to a request without a body.
func (c *s3Client) sign(ctx context.Context, r *http.Request) error {
	if c.config.Anonymous {
		return nil
	}
	credentials, err := c.credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("find credentials for S3: %w", err)
	}
	r.Header.Set("X-Amz-Content-Sha256", emptySHA256)
	if err := c.signer.SignHTTP(ctx, credentials, r, emptySHA256, "s3", c.region, time.Now()); err != nil {
		return fmt.Errorf("sign the request: %w", err)
	}
	return nil
}
