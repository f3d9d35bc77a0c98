package artifacts

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/bucket"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/notfound"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// StoreConfig is the artifact store, in which Spinnaker's other services keep large artifacts (artifact-store).
type StoreConfig struct {
	// s3, or empty for no store.
	Type string `config:"type"`
	// Bucket of the store.
	S3 StoreBucket `config:"s3"`
}

// StoreBucket is a bucket with artifacts.
type StoreBucket struct {
	// artifact-store.type alone decides.
	Enabled bool `config:"enabled,ignored"`
	// Name of the bucket. Required with type s3.
	Bucket string `config:"bucket"`
	// Region of the bucket. Default: that of the environment.
	Region string `config:"region"`
	// URL of a service with the API of S3. Default: that of AWS.
	URL string `config:"url"`
	// Access key. Default: as for accounts of S3; none if url is set.
	AccessKey string `config:"accessKey,alias=access-key"`
	// Secret of the access key.
	SecretKey configfile.Secret `config:"secretKey,alias=secret-key"`
	// Profile of ~/.aws.
	Profile string `config:"profile"`
	// Put the bucket into the path of URLs, not into the host.
	ForcePathStyle bool `config:"forcePathStyle,alias=force-path-style" default:"true"`
}

func (b StoreBucket) bucketConfig() bucket.S3Config {
	return bucket.S3Config{Endpoint: b.URL, Region: b.Region, AccessKeyID: b.AccessKey, SecretKey: text(b.SecretKey), Profile: b.Profile,
		Anonymous: b.AccessKey == "" && b.Profile == "" && b.URL != "", VirtualHosts: !b.ForcePathStyle}
}

// Check reports what is wrong with the settings.
func (s StoreConfig) Check(c configfile.Checker) {
	switch s.Type {
	case "":
		return
	case "s3":
	default:
		c.Problem("type", " must be s3, got %q", s.Type)
	}
	if s.S3.Bucket == "" {
		c.Problem("type", " is s3, but %q is missing", c.Path("s3.bucket"))
	}
	checkURL(c, "s3.url", s.S3.URL, false)
}

// referenceScheme begins references to the store. They are ref://APPLICATION/HASH.
const referenceScheme = "ref://"

// applicationTag is the tag of an object with the application to which it belongs.
const applicationTag = "application"

// objectStore reads the store. A nil store has no objects.
type objectStore struct {
	bucket string
	client *s3Client
}

func newObjectStore(cfg StoreConfig, client *egress.Client) *objectStore {
	if cfg.Type == "" {
		return nil
	}
	return &objectStore{bucket: cfg.S3.Bucket, client: &s3Client{s3: bucket.NewS3(cfg.S3.bucketConfig()), client: client}}
}

// Stored returns the content at an address of the artifact store, in base64.
func (a *Accounts) Stored(ctx context.Context, application, hash string, mayRead func(context.Context, string) error) (string, error) {
	place, err := a.admit(ctx, storeCaller)
	if err != nil {
		return "", err
	}
	defer place.Release()
	content, err := a.store.read(ctx, application+"/"+hash, mayRead)
	if err != nil {
		return "", classify(ctx, "artifact failed to be retrieved: ref="+referenceScheme+application+"/"+hash, err)
	}
	return base64.StdEncoding.EncodeToString(content), nil
}

// fetch returns the content of an artifact of type remote/base64.
func (s *objectStore) fetch(ctx context.Context, r Request) (io.ReadCloser, error) {
	content, err := s.read(ctx, strings.TrimPrefix(r.Artifact.Reference, referenceScheme), r.MayRead)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// maxStoredBytes bounds what is read into memory. Orca keeps requests of at most a few MiB.
const maxStoredBytes = 32 << 20

// read returns an object if the caller may read the application that its tag names. An object
// without the tag belongs to nobody, and nobody may read it.
func (s *objectStore) read(ctx context.Context, key string, mayRead func(context.Context, string) error) ([]byte, error) {
	if s == nil {
		return nil, vedette.Errorf(vedette.Invalid,
			"the artifact is in an artifact store, and this server has none: set artifact-store as in the configuration of Spinnaker's other services")
	}
	parts := strings.Split(key, "/")
	if len(parts) < 2 || slices.Contains(parts, "") || slices.Contains(parts, "..") || slices.Contains(parts, ".") {
		return nil, vedette.Errorf(vedette.Invalid, "references to the artifact store must be of the form %sAPPLICATION/HASH", referenceScheme)
	}
	object := bucket.Object{Bucket: s.bucket, Path: key}
	if err := s.checkTag(ctx, object, mayRead); err != nil {
		return nil, notFound(err)
	}
	body, err := s.client.get(ctx, object, "")
	if err != nil {
		return nil, notFound(err)
	}
	defer body.Close()
	content, err := io.ReadAll(io.LimitReader(body, maxStoredBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the artifact store: %w", err)
	}
	if len(content) > maxStoredBytes {
		return nil, &egress.SizeError{Limit: maxStoredBytes}
	}
	return content, nil
}

// objectTags is S3's answer to ?tagging.
type objectTags struct {
	Tags []struct {
		Key   string `xml:"Key"`
		Value string `xml:"Value"`
	} `xml:"TagSet>Tag"`
}

const maxTagBytes = 64 << 10

func (s *objectStore) checkTag(ctx context.Context, object bucket.Object, mayRead func(context.Context, string) error) error {
	body, err := s.client.get(ctx, object, "tagging=")
	if err != nil {
		return err
	}
	defer body.Close()
	var tags objectTags
	if err := xml.NewDecoder(io.LimitReader(body, maxTagBytes)).Decode(&tags); err != nil {
		return errors.New("the artifact store answered something else than tags")
	}
	for _, tag := range tags.Tags {
		if tag.Key != applicationTag {
			continue
		}
		if mayRead == nil {
			return nil
		}
		return mayRead(ctx, tag.Value)
	}
	return vedette.Errorf(vedette.Denied, "the object has no tag %q, so that nobody has permission to access it", applicationTag)
}

func notFound(err error) error {
	return asNotFound(err, notfound.S3Object, "the artifact store does not have it")
}
