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

// fetcher is an account with the means to fetch its artifacts.
type fetcher interface {
	account() Account
	handles(artifactType string) bool
	fetch(ctx context.Context, r Request) (io.ReadCloser, error)
}

// lister is a fetcher that knows its artifacts.
type lister interface {
	names(ctx context.Context) ([]string, error)
	versions(ctx context.Context, name string) ([]string, error)
}

// Accounts are all artifact accounts of a server.
type Accounts struct {
	fetchers []fetcher
	store    *objectStore
	places   *fair.Line
	memory   *fair.Line
	enabled  bool
}

// List returns all accounts: configured ones first, then those that exist without configuration.
func (a *Accounts) List() []Account {
	list := []Account{}
	for _, s := range a.fetchers {
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
	if needsNoRequest(s, r.Artifact) {
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

// needsNoRequest reports whether an artifact is fetched without a request to another service. Then it does not wait for others.
func needsNoRequest(s fetcher, artifact manifest.Artifact) bool {
	switch s.(type) {
	case namedFetcher:
		return true
	case embeddedFetcher:
		return !isStored(artifact)
	}
	return false
}

// Names returns the names of an account's artifacts.
func (a *Accounts) Names(ctx context.Context, account, artifactType string) ([]string, error) {
	return a.list(ctx, account, artifactType, "names", func(l lister) ([]string, error) { return l.names(ctx) })
}

// Versions returns the versions of one of an account's artifacts.
func (a *Accounts) Versions(ctx context.Context, account, artifactType, name string) ([]string, error) {
	return a.list(ctx, account, artifactType, "versions", func(l lister) ([]string, error) { return l.versions(ctx, name) })
}

// list returns what read returns, which are the names or the versions that the account has.
func (a *Accounts) list(ctx context.Context, account, artifactType, what string, read func(lister) ([]string, error)) ([]string, error) {
	l, err := a.findLister(account, artifactType, what)
	if err != nil {
		return nil, err
	}
	place, err := a.admit(ctx, listCaller)
	if err != nil {
		return nil, err
	}
	defer place.Release()
	list, err := read(l)
	return list, listError(ctx, account, what, err)
}

func (a *Accounts) find(name, artifactType string) (fetcher, error) {
	if name == "" {
		return nil, vedette.Errorf(vedette.Invalid, "An artifact account must be supplied to download this artifact: set artifactAccount")
	}
	i := slices.IndexFunc(a.fetchers, func(s fetcher) bool { return s.account().Name == name && s.handles(artifactType) })
	if i < 0 {
		return nil, &MissingError{name, artifactType}
	}
	return a.fetchers[i], nil
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

func (c *admittedContent) Close() error {
	defer c.place.Release()
	return c.ReadCloser.Close()
}
