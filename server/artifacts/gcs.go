package artifacts

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/vedette-io/vedette/internal/bucket"
	"github.com/vedette-io/vedette/internal/notfound"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// GCSAccount is an account of Google Cloud Storage.
type GCSAccount struct {
	// Name of the account.
	Name string `config:"name"`
	// File with the key of a service account. Default: the credentials of the environment or the machine.
	JSONPath string `config:"jsonPath"`
	// URL of a server with the same API. Default: https://storage.googleapis.com.
	Endpoint string `config:"endpoint"`
}

func (a GCSAccount) fetcher(client *egress.Client) fetcher {
	c := newGCSClient(a, client)
	return bucketFetcher{Account: Account{a.Name, []string{"gcs/object"}, "artifacts-gcs"}, scheme: "gs://", open: c.open}
}

type gcsClient struct {
	gcs    *bucket.GCS
	client *egress.Client
}

func newGCSClient(a GCSAccount, client *egress.Client) *gcsClient {
	path := strings.TrimPrefix(a.JSONPath, "file:")
	cfg := bucket.GCSConfig{Endpoint: a.Endpoint, KeyPath: path, Timeout: client.Limits().StallTimeout}
	if path != "" {
		cfg.Key = func() ([]byte, error) { return readFile(path) }
	}
	return &gcsClient{gcs: bucket.NewGCS(cfg), client: client}
}

func (c *gcsClient) open(ctx context.Context, o bucket.Object) (io.ReadCloser, error) {
	u, err := c.gcs.Locate(splitVersion(o))
	if err != nil {
		return nil, err
	}
	token, err := c.gcs.Token(ctx)
	if err != nil {
		return nil, err
	}
	body, err := c.client.Get(ctx, egress.Request{URL: u, Header: http.Header{"Authorization": {"Bearer " + token}}})
	return body, asNotFound(err, notfound.GCS, "gs://%.300s/%.300s not found", o.Bucket, o.Path)
}
