package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
)

// S3Config selects S3, or a service with the same API, and the credentials for it.
type S3Config struct {
	// Endpoint is the URL of a service with the API of S3. Empty means AWS.
	Endpoint string
	// Region defaults to that of the environment, and then to us-east-1.
	Region string
	// AccessKeyID and SecretKey are those of an account. If they are empty, they come from the
	// environment, ~/.aws, the pod's service account or the machine's role, as in other programs
	// for AWS.
	AccessKeyID string
	SecretKey   func() (string, error)
	// Profile selects a profile of ~/.aws; empty means the default.
	Profile string
	// Anonymous sends requests without a signature.
	Anonymous bool
	// VirtualHosts puts the bucket into the name of the host though Endpoint is set.
	VirtualHosts bool
}

// S3 locates objects, and signs requests for them.
type S3 struct {
	config S3Config
	signer *v4.Signer

	mu          sync.Mutex
	credentials aws.CredentialsProvider
	region      string
}

// NewS3 returns an S3. It does no I/O.
func NewS3(cfg S3Config) *S3 {
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }) // S3 escapes once
	return &S3{config: cfg, signer: signer, region: cfg.Region}
}

// Load finds out the credentials and the region when they are needed first, because they may be
// questions to a metadata service, and a start must not depend on that. Locate and Sign need it.
func (c *S3) Load(ctx context.Context) error {
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

func (c *S3) static(context.Context) (aws.Credentials, error) {
	if c.config.SecretKey == nil {
		return aws.Credentials{}, errors.New("the account has an access key ID and no secret access key")
	}
	secret, err := c.config.SecretKey()
	return aws.Credentials{AccessKeyID: c.config.AccessKeyID, SecretAccessKey: secret}, err
}

// Locate returns the URL of an object. Certificates of S3 do not cover buckets with dots in their
// names as hosts.
func (c *S3) Locate(o Object) (*url.URL, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	base := &url.URL{Scheme: "https", Host: "s3." + c.region + ".amazonaws.com"}
	if strings.HasPrefix(c.region, "cn-") {
		base.Host += ".cn"
	}
	virtual := !strings.Contains(o.Bucket, ".")
	if c.config.Endpoint != "" {
		var err error
		if base, err = url.Parse(strings.TrimSuffix(c.config.Endpoint, "/")); err != nil || base.Host == "" {
			return nil, errors.New("the endpoint is not a URL")
		}
		virtual = c.config.VirtualHosts
	}
	path := base.EscapedPath() + "/" + EscapePath(o.Path)
	if virtual {
		base.Host = o.Bucket + "." + base.Host
	} else {
		path = base.EscapedPath() + "/" + o.Bucket + "/" + EscapePath(o.Path)
	}
	return WithEscapedPath(base, path)
}

const emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// Sign adds the signature of AWS to a request without a body.
func (c *S3) Sign(ctx context.Context, r *http.Request) error {
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
