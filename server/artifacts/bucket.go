package artifacts

import (
	"context"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// bucketSource fetches objects of buckets. Its references are like s3://BUCKET/PATH, with or
// without the scheme.
type bucketSource struct {
	Account
	scheme string
	open   func(ctx context.Context, o bucketObject) (io.ReadCloser, error)
}

// bucketObject names an object of a bucket.
type bucketObject struct {
	bucket, path string
	version      string // what follows the last # of a reference, in services that have versions
}

func (s bucketSource) account() Account { return s.Account }
func (s bucketSource) handles(artifactType string) bool {
	return slices.Contains(s.Types, artifactType)
}

func (s bucketSource) fetch(ctx context.Context, r Request) (io.ReadCloser, error) {
	bucket, path, ok := strings.Cut(strings.TrimPrefix(r.Artifact.Reference, s.scheme), "/")
	if !ok || bucket == "" || path == "" {
		return nil, vedette.Errorf(vedette.Invalid, "references of type %.100s must be of the format %s<bucket>/<file-path>", r.Artifact.Type, s.scheme)
	}
	// A bucket becomes part of a host name or of a path, so that it must not lead elsewhere.
	if strings.ContainsFunc(bucket, func(c rune) bool { return !isBucketRune(c) }) {
		return nil, vedette.Errorf(vedette.Invalid, "%.100q is not a valid name of a bucket", bucket)
	}
	// Proxies and services may take such a path for that of another bucket.
	if parts := strings.Split(path, "/"); slices.Contains(parts, ".") || slices.Contains(parts, "..") {
		return nil, vedette.Errorf(vedette.Invalid, `the path %.300q of the object must not contain the parts "." and ".."`, path)
	}
	return s.open(ctx, bucketObject{bucket: bucket, path: path})
}

func isBucketRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._", c)
}

// splitVersion separates the version of an object from its path.
func (o bucketObject) splitVersion() bucketObject {
	if i := strings.LastIndexByte(o.path, '#'); i >= 0 {
		o.path, o.version = o.path[:i], o.path[i+1:]
	}
	return o
}

// escapePath escapes the path of an object except slashes, for the path of a URL.
func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.QueryEscape(part), "+", "%20")
	}
	return strings.Join(parts, "/")
}

// withEscapedPath returns a copy of base with a path that is escaped already.
func withEscapedPath(base *url.URL, escaped string) (*url.URL, error) {
	u := *base
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "%.100q is not a valid path: %w", escaped, err)
	}
	u.Path, u.RawPath = path, escaped
	return &u, nil
}
