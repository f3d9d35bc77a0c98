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

// GCSAccount fetches objects of Google Cloud Storage.
type GCSAccount struct {
	Name string
	// JSONPath is a file with the key of a service account. Empty means the credentials of the
	// environment, the user or the machine.
	JSONPath string
	// Endpoint replaces https://storage.googleapis.com.
	Endpoint string
}

func (a GCSAccount) source(client *egress.Client) source {
	c := newGCSClient(a, client)
	return bucketSource{Account: Account{a.Name, []string{"gcs/object"}, "artifacts-gcs"}, scheme: "gs://", open: c.open}
}

type gcsClient struct {
	gcs    *bucket.GCS
	client *egress.Client
}

func newGCSClient(a GCSAccount, client *egress.Client) *gcsClient {
	cfg := bucket.GCSConfig{Endpoint: a.Endpoint, KeyPath: a.JSONPath, Timeout: client.Limits().StallTimeout}
	if a.JSONPath != "" {
		cfg.Key = func() ([]byte, error) { return readFile(a.JSONPath) }
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
	var status *egress.StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound {
		return nil, vedette.Errorf(vedette.NotFound, "gs://%.300s/%.300s not found", o.Bucket, o.Path)
	}
	return body, err
}
