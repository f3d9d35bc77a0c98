// Package bucket locates objects of S3 and of Google Cloud Storage, and authenticates the requests for
// them. The vendors' libraries find the credentials; callers send the requests themselves, with
// their own limits, because libraries that send them add 6 MB to a program.
package bucket

import (
	"net/url"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// Object names an object of a bucket.
type Object struct {
	Bucket, Path string
	// Version is that of the object, in services that have versions. Empty means the newest.
	Version string
}

// Validate rejects names that lead to another host, another bucket, or out of the endpoint's path. The
// functions that locate objects call it, so that no request is signed for any other path.
func (o Object) Validate() error {
	// A bucket becomes part of a host name or of a path. No service allows dots at its ends, or two of them.
	if o.Bucket == "" || strings.ContainsFunc(o.Bucket, func(c rune) bool { return !isBucketRune(c) }) ||
		o.Bucket[0] == '.' || strings.HasSuffix(o.Bucket, ".") || strings.Contains(o.Bucket, "..") {
		return vedette.Errorf(vedette.Invalid, "%.100q is not a valid name of a bucket", o.Bucket)
	}
	if o.Path == "" {
		return vedette.Errorf(vedette.Invalid, "the path of the object in bucket %.100q is empty", o.Bucket)
	}
	// Proxies and services may take such a path for that of another bucket.
	if parts := strings.Split(o.Path, "/"); slices.Contains(parts, ".") || slices.Contains(parts, "..") {
		return vedette.Errorf(vedette.Invalid, `the path %.300q of the object must not contain the parts "." and ".."`, o.Path)
	}
	return nil
}

func isBucketRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._", c)
}

// EscapePath escapes the path of an object except slashes, for the path of a URL.
func EscapePath(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.QueryEscape(part), "+", "%20")
	}
	return strings.Join(parts, "/")
}

// WithEscapedPath returns a copy of base with a path that is escaped already.
func WithEscapedPath(base *url.URL, escaped string) (*url.URL, error) {
	u := *base
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "%.100q is not a valid path: %w", escaped, err)
	}
	u.Path, u.RawPath = path, escaped
	return &u, nil
}
