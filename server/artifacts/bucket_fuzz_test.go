package artifacts

import (
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/bucket"
	"github.com/vedette-io/vedette/server/manifest"
)

// FuzzBucketReference checks that no reference leads to another host than the account's, and that
// the URL is one that can be requested.
func FuzzBucketReference(f *testing.F) {
	for _, seed := range []string{"s3://bucket/a/b.yaml", "bucket/a b#1", "s3://evil.example/x", "s3://a@b/c", "s3://../../x", "gs://b/%2e%2e/%zz", "oci://b/\x00", "../x", "b/a/..#1", "b/..#v"} {
		f.Add(seed)
	}
	aws := bucket.NewS3(bucket.S3Config{Region: "eu-1"})
	minio := bucket.NewS3(bucket.S3Config{Region: "eu-1", Endpoint: "http://minio:9000/base"})
	gcs := bucket.NewGCS(bucket.GCSConfig{})
	oracle := oracleClient{account: OracleAccount{Endpoint: "https://objectstorage.r.oraclecloud.com", Namespace: "n"}}
	locate := map[string]func(bucket.Object) (*url.URL, error){
		"amazonaws.com": aws.Locate, "minio:9000": minio.Locate,
		"storage.googleapis.com":          func(o bucket.Object) (*url.URL, error) { return gcs.Locate(splitVersion(o)) },
		"objectstorage.r.oraclecloud.com": func(o bucket.Object) (*url.URL, error) { return oracle.locate(splitVersion(o)) },
	}
	f.Fuzz(func(t *testing.T, reference string) {
		for host, locate := range locate {
			fetcher := bucketFetcher{scheme: "s3://", open: func(_ context.Context, o bucket.Object) (io.ReadCloser, error) {
				u, err := locate(o)
				if err != nil {
					return nil, err
				}
				parsed, err := url.Parse(u.String())
				if err != nil {
					t.Fatalf("%q: %v", reference, err)
				}
				name, isSuffix := strings.CutSuffix(parsed.Host, host)
				if !isSuffix || name != "" && !strings.HasSuffix(name, ".") || parsed.User != nil {
					t.Errorf("%q leads to %s, want %s", reference, parsed.Host, host)
				}
				if parts := strings.Split(parsed.Path, "/"); host != "storage.googleapis.com" && (slices.Contains(parts, "..") || slices.Contains(parts, ".")) {
					t.Errorf("%q leads to the path %s", reference, parsed.Path)
				}
				return nil, errors.New("found")
			}}
			_, _ = fetcher.fetch(t.Context(), Request{Artifact: manifest.Artifact{Reference: reference}})
		}
	})
}
