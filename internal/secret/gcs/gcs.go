// Package gcs reads secrets in files of Google Cloud Storage:
//
//	encrypted:gcs!b:BUCKET!f:FILE!k:KEY
//
// KEY is a path in a YAML file, as in database.password; without it, the secret is the whole file.
package gcs

import (
	"context"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/bucket"
	"github.com/vedette-io/vedette/internal/notfound"
	"github.com/vedette-io/vedette/internal/secret"
)

// Engine reads secrets of Google Cloud Storage with the credentials of the environment, as other programs
// for Google Cloud.
type Engine struct {
	client    *http.Client
	gcs       *bucket.GCS
	anonymous bool
}

const tokenTimeout = 10 * time.Second

// New returns an engine that sends requests by a client. An emulator is a URL of a server with the
// same API, to which no credentials are sent; empty means Google.
func New(client *http.Client, emulator string) *Engine {
	return &Engine{client: client, anonymous: emulator != "", gcs: bucket.NewGCS(bucket.GCSConfig{Endpoint: emulator, Timeout: tokenTimeout})}
}

// Locate implements secret.Engine.
func (e *Engine) Locate(r secret.Reference) (secret.Location, error) {
	params, err := r.Params([]string{"b", "f"}, []string{"k"})
	if err != nil {
		return secret.Location{}, err
	}
	object := bucket.Object{Bucket: params["b"], Path: params["f"]}
	if err := object.Validate(); err != nil {
		return secret.Location{}, err
	}
	return secret.Location{
		Document: object.Bucket + "!" + object.Path,
		Fetch:    func(ctx context.Context) ([]byte, error) { return e.fetch(ctx, object) },
		Select:   secret.WholeOrYAMLKey(params["k"]),
	}, nil
}

func (e *Engine) fetch(ctx context.Context, object bucket.Object) ([]byte, error) {
	u, err := e.gcs.Locate(object)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	if !e.anonymous {
		// The service that issues tokens may start later than this program.
		token, err := e.gcs.Token(ctx)
		if err != nil {
			return nil, vedette.Errorf(vedette.Unavailable, "%w", err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return secret.Do(e.client, r, notfound.GCS)
}
