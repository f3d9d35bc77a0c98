// Package artifacts holds artifact accounts and fetches artifacts with them, as Clouddriver does:
// files of Git services, archives of Git repositories, objects of buckets, Helm charts and the
// content that artifacts embed. What pipelines name is fetched through package egress, which
// protects the server's network and memory.
package artifacts

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/manifest"
)

// Account is what Spinnaker shows of an artifact account.
type Account struct {
	Name  string   `json:"name"`
	Types []string `json:"types"` // types of artifacts, for example "github/file"
	Type  string   `json:"type"`  // of the account, for example "artifacts-github"
}

// Request names an artifact to fetch.
type Request struct {
	Artifact manifest.Artifact
	// MayRead returns an error if the caller may not read an application. Content of the artifact
	// store belongs to applications. Nil means that the caller may read all.
	MayRead func(ctx context.Context, application string) error
	// Caller is who asks. One caller cannot take the places of all others.
	Caller string
}

// source is an account with the means to fetch its artifacts.
type source interface {
	account() Account
	handles(artifactType string) bool
	fetch(ctx context.Context, r Request) (io.ReadCloser, error)
}

// lister is a source that knows its artifacts.
type lister interface {
	names(ctx context.Context) ([]string, error)
	versions(ctx context.Context, name string) ([]string, error)
}

// Accounts are all artifact accounts of a server.
type Accounts struct {
	sources []source
	store   *objectStore
	places  *fair.Line
	memory  *fair.Line
	enabled bool
}

// List returns all accounts: configured ones first, then those that exist without configuration.
func (a *Accounts) List() []Account {
	list := []Account{}
	for _, s := range a.sources {
		list = append(list, s.account())
	}
	return list
}

// Fetch returns the content of an artifact. The caller closes it. Reading fails if a limit is
// exceeded. Errors that are no vedette.Error are DownloadErrors.
func (a *Accounts) Fetch(ctx context.Context, r Request) (io.ReadCloser, error) {
	if !a.enabled {
		return nil, &DownloadError{Message: "Artifacts have not been enabled. Enable them using 'artifacts.enabled' in the server's configuration"}
	}
	s, err := a.find(r.Artifact.ArtifactAccount, r.Artifact.Type)
	if err != nil {
		return nil, err
	}
	if needsNothing(s, r.Artifact) {
		content, err := s.fetch(ctx, r)
		if err != nil {
			return nil, publicError(ctx, r.Artifact, err)
		}
		return content, nil
	}
	place, err := a.admit(ctx, r.Caller)
	if err != nil {
		return nil, err
	}
	content, err := s.fetch(ctx, r)
	if err != nil {
		place.Release()
		return nil, publicError(ctx, r.Artifact, err)
	}
	return &admittedContent{ReadCloser: content, place: place}, nil
}

// needsNothing reports whether an artifact is fetched from nowhere. Then it does not wait for others.
func needsNothing(s source, artifact manifest.Artifact) bool {
	switch s.(type) {
	case namedSource:
		return true
	case embeddedSource:
		return !isStored(artifact)
	}
	return false
}

// Names returns the names of an account's artifacts.
func (a *Accounts) Names(ctx context.Context, account, artifactType string) ([]string, error) {
	l, err := a.findLister(account, artifactType, "names")
	if err != nil {
		return nil, err
	}
	place, err := a.admit(ctx, listCaller)
	if err != nil {
		return nil, err
	}
	defer place.Release()
	names, err := l.names(ctx)
	return names, listError(ctx, account, "names", err)
}

// Versions returns the versions of one of an account's artifacts.
func (a *Accounts) Versions(ctx context.Context, account, artifactType, name string) ([]string, error) {
	l, err := a.findLister(account, artifactType, "versions")
	if err != nil {
		return nil, err
	}
	place, err := a.admit(ctx, listCaller)
	if err != nil {
		return nil, err
	}
	defer place.Release()
	versions, err := l.versions(ctx, name)
	return versions, listError(ctx, account, "versions", err)
}

func (a *Accounts) find(name, artifactType string) (source, error) {
	if name == "" {
		return nil, vedette.Errorf(vedette.Invalid, "An artifact account must be supplied to download this artifact: set artifactAccount")
	}
	i := slices.IndexFunc(a.sources, func(s source) bool { return s.account().Name == name && s.handles(artifactType) })
	if i < 0 {
		return nil, &MissingError{name, artifactType}
	}
	return a.sources[i], nil
}

func (a *Accounts) findLister(name, artifactType, what string) (lister, error) {
	if !a.enabled {
		return nil, &MissingError{name, artifactType}
	}
	s, err := a.find(name, artifactType)
	if err != nil {
		return nil, err
	}
	l, ok := s.(lister)
	if !ok {
		return nil, &DownloadError{Message: fmt.Sprintf("Artifact %s are not supported for artifact types that '%s' account handles", what, name)}
	}
	return l, nil
}

// admittedContent leaves room for the next artifact when it is closed.
type admittedContent struct {
	io.ReadCloser
	place *fair.Grant
}

// Close closes the content.
func (c *admittedContent) Close() error {
	defer c.place.Release()
	return c.ReadCloser.Close()
}
