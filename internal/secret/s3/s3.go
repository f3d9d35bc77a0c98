// Package s3 reads secrets in files of S3:
//
//	encrypted:s3!r:REGION!b:BUCKET!f:FILE!k:KEY
//
// KEY is a path in a YAML file, as in database.password; without it, the secret is the whole file.
package s3

import (
	"cmp"
	"context"
	"net/http"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/bucket"
	"github.com/vedette-io/vedette/internal/notfound"
	"github.com/vedette-io/vedette/internal/secret"
)

// Engine reads secrets of S3 with the credentials of the environment, as other programs for AWS.
type Engine struct {
	// Endpoint is the URL of a service with the API of S3; empty means AWS.
	Endpoint string
	// Client sends the requests.
	Client *http.Client

	mu      sync.Mutex
	regions map[string]*bucket.S3
}

// Locate implements secret.Engine.
func (e *Engine) Locate(r secret.Reference) (secret.Location, error) {
	params, err := r.Params([]string{"r", "b", "f"}, []string{"k"})
	if err != nil {
		return secret.Location{}, err
	}
	object := bucket.Object{Bucket: params["b"], Path: params["f"]}
	if err := object.Validate(); err != nil {
		return secret.Location{}, err
	}
	return secret.Location{
		Document: params["r"] + "!" + object.Bucket + "!" + object.Path,
		Fetch:    func(ctx context.Context) ([]byte, error) { return e.fetch(ctx, params["r"], object) },
		Select:   secret.WholeOrYAMLKey(params["k"]),
	}, nil
}

func (e *Engine) region(name string) *bucket.S3 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.regions == nil {
		e.regions = map[string]*bucket.S3{}
	}
	if e.regions[name] == nil {
		e.regions[name] = bucket.NewS3(bucket.S3Config{Endpoint: e.Endpoint, Region: name})
	}
	return e.regions[name]
}

func (e *Engine) fetch(ctx context.Context, region string, object bucket.Object) ([]byte, error) {
	s3 := e.region(region)
	if err := s3.Load(ctx); err != nil {
		return nil, err
	}
	u, err := s3.Locate(object)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	// The service that issues credentials may start later than this program.
	if err := s3.Sign(ctx, r); err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "%w", cmp.Or(context.Cause(ctx), err))
	}
	return secret.Do(e.Client, r, notfound.S3)
}
