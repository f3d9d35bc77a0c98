// Package artifacts holds artifact accounts and fetches artifacts with them, as Clouddriver does:
// files of Git services, archives of Git repositories, objects of buckets, Helm charts and the
// content that artifacts embed. What pipelines name is fetched through package egress, which
// protects the server's network and memory.
package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/artifacts/egress"
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
	running chan struct{} // a token for each artifact that is being fetched
	enabled bool
}

// admissionTimeout is the time that a request waits while too many artifacts are being fetched.
const admissionTimeout = 30 * time.Second

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
	release, err := a.admit(ctx)
	if err != nil {
		return nil, err
	}
	content, err := s.fetch(ctx, r)
	if err != nil {
		release()
		return nil, publicError(ctx, r.Artifact, err)
	}
	return &admittedContent{ReadCloser: content, release: release}, nil
}

// Names returns the names of an account's artifacts.
func (a *Accounts) Names(ctx context.Context, account, artifactType string) ([]string, error) {
	l, err := a.findLister(account, artifactType, "names")
	if err != nil {
		return nil, err
	}
	names, err := l.names(ctx)
	return names, listError(ctx, account, "names", err)
}

// Versions returns the versions of one of an account's artifacts.
func (a *Accounts) Versions(ctx context.Context, account, artifactType, name string) ([]string, error) {
	l, err := a.findLister(account, artifactType, "versions")
	if err != nil {
		return nil, err
	}
	versions, err := l.versions(ctx, name)
	return versions, listError(ctx, account, "versions", err)
}

// MissingError means that no account of a name supports a type of artifacts.
type MissingError struct{ Account, Type string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("Credentials '%.300s' supporting artifact type '%.300s' cannot be found", e.Account, e.Type)
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

// admit waits until there is room for one more artifact, so that memory and disk are bounded
// however many stages of pipelines start at the same time.
func (a *Accounts) admit(ctx context.Context) (release func(), err error) {
	timeout := time.NewTimer(admissionTimeout)
	defer timeout.Stop()
	select {
	case a.running <- struct{}{}:
		return func() { <-a.running }, nil
	case <-timeout.C:
		return nil, vedette.Errorf(vedette.Unavailable, "%d artifacts are being fetched, and none was complete within %s: retry, "+
			"or raise artifacts.limits.maxConcurrent", cap(a.running), admissionTimeout)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// admittedContent leaves room for the next artifact when it is closed.
type admittedContent struct {
	io.ReadCloser
	release func()
}

// Close closes the content. It must be called once.
func (c *admittedContent) Close() error {
	defer c.release()
	return c.ReadCloser.Close()
}

// DownloadError means that an artifact could not be fetched though the request was right.
type DownloadError struct {
	Message string // may be shown
	Err     error
}

func (e *DownloadError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *DownloadError) Unwrap() error { return e.Err }

// publicError adds the artifact to an error.
func publicError(ctx context.Context, artifact manifest.Artifact, err error) error {
	what := fmt.Sprintf("Unable to download the contents of artifact %.300q of type %.100s with account %.300s",
		nameOf(artifact), artifact.Type, artifact.ArtifactAccount)
	return classify(ctx, what, err)
}

func listError(ctx context.Context, account, what string, err error) error {
	if err == nil {
		return nil
	}
	return classify(ctx, fmt.Sprintf("Failed to download artifact %s for '%.300s' account", what, account), err)
}

// classify returns an error that says what failed. Addresses that are denied are the fault of
// whoever named them; every error that has no kind is the other server's.
func classify(ctx context.Context, what string, err error) error {
	var denied *egress.AddressError
	var public *vedette.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &denied):
		return vedette.Errorf(vedette.Invalid, "%s: %w: if it is meant, add it to artifacts.network.allowedAddresses in the server's configuration", what, err)
	case errors.As(err, &public):
		return vedette.Errorf(public.Kind, "%s: %w", what, err)
	}
	return &DownloadError{Message: what + ": " + err.Error(), Err: err}
}

// nameOf returns what users know an artifact by. References may contain passwords and tokens, so
// that only their host is shown.
func nameOf(artifact manifest.Artifact) string {
	if artifact.Name != "" {
		return artifact.Name
	}
	u, err := url.Parse(artifact.Reference)
	if err != nil {
		return ""
	}
	return u.Host
}
