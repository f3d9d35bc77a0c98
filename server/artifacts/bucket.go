package artifacts

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/bucket"
)

// bucketFetcher fetches objects of buckets. Its references are like s3://BUCKET/PATH, with or
// without the scheme.
type bucketFetcher struct {
	Account
	scheme string
	open   func(ctx context.Context, o bucket.Object) (io.ReadCloser, error)
}

func (s bucketFetcher) account() Account { return s.Account }
func (s bucketFetcher) handles(artifactType string) bool {
	return slices.Contains(s.Types, artifactType)
}

func (s bucketFetcher) fetch(ctx context.Context, r Request) (io.ReadCloser, error) {
	name, path, ok := strings.Cut(strings.TrimPrefix(r.Artifact.Reference, s.scheme), "/")
	if !ok || name == "" || path == "" {
		return nil, vedette.Errorf(vedette.Invalid, "references of type %.100s must be of the format %s<bucket>/<file-path>", r.Artifact.Type, s.scheme)
	}
	return s.open(ctx, bucket.Object{Bucket: name, Path: path})
}

// splitVersion separates the version of an object, which follows the last # of a reference, from
// its path.
func splitVersion(o bucket.Object) bucket.Object {
	if i := strings.LastIndexByte(o.Path, '#'); i >= 0 {
		o.Path, o.Version = o.Path[:i], o.Path[i+1:]
	}
	return o
}
