package artifacts

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// Types of artifacts that contain their own content. A bake produces them, and a deployment with
// "source: artifact" consumes them.
const (
	embeddedType = "embedded/base64"
	remoteType   = "remote/base64"
)

// embeddedFetcher decodes the content of artifacts that contain it.
type embeddedFetcher struct{ store *objectStore }

func (embeddedFetcher) account() Account {
	return Account{"embedded-artifact", []string{embeddedType, remoteType}, "artifacts-embedded"}
}

func (embeddedFetcher) handles(artifactType string) bool {
	return strings.HasPrefix(artifactType, "embedded/") || strings.HasPrefix(artifactType, "remote/")
}

// isStored reports whether the content of an artifact is in the artifact store.
func isStored(a manifest.Artifact) bool {
	return a.Type == remoteType && strings.HasPrefix(a.Reference, referenceScheme)
}

func (s embeddedFetcher) fetch(ctx context.Context, r Request) (io.ReadCloser, error) {
	switch {
	case r.Artifact.Type != embeddedType && r.Artifact.Type != remoteType:
		return nil, &DownloadError{Message: "Embedded type '" + r.Artifact.Type + "' is not handled."}
	case isStored(r.Artifact):
		return s.store.fetch(ctx, r)
	}
	// Clouddriver accepts content with and without padding.
	content, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(r.Artifact.Reference, "=\r\n"))
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the reference of artifact %.300q is not valid base64: %w", r.Artifact.Name, err)
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// namedFetcher is an account whose artifacts are only names: editors of pipelines offer them, and
// clusters fetch what they stand for.
type namedFetcher struct {
	Account
	reason string
}

// namedFetchers exist in every Clouddriver with Kubernetes.
var namedFetchers = []fetcher{
	namedFetcher{Account{"docker-registry", []string{"docker/image"}, "artifacts-docker"},
		"Docker references are passed on to cloud platforms who retrieve images directly"},
	namedFetcher{Account{"kubernetes",
		[]string{"kubernetes/configMap", "kubernetes/deployment", "kubernetes/replicaSet", "kubernetes/secret"}, "artifacts-kubernetes"},
		"Kubernetes artifacts are retrieved by kubernetes directly"},
	namedFetcher{Account{"custom-artifact", []string{"custom/object"}, "artifacts-custom"},
		"Custom references are passed on to cloud platforms to handle or process"},
}

func (s namedFetcher) account() Account { return s.Account }
func (s namedFetcher) handles(artifactType string) bool {
	return slices.Contains(s.Types, artifactType)
}
func (s namedFetcher) fetch(context.Context, Request) (io.ReadCloser, error) {
	return nil, &DownloadError{Message: s.reason}
}
