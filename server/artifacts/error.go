package artifacts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/notfound"
	"github.com/vedette-io/vedette/server/artifacts/egress"
	"github.com/vedette-io/vedette/server/manifest"
)

// MissingError means that no account of a name supports a type of artifacts.
type MissingError struct{ Account, Type string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("Credentials '%.300s' supporting artifact type '%.300s' cannot be found", e.Account, e.Type)
}

// DownloadError means that an artifact could not be fetched though the request was right.
type DownloadError struct {
	Message string // may be shown
	Err     error
}

func (e *DownloadError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *DownloadError) Unwrap() error { return e.Err }

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

// asNotFound returns the error for something that a service, by its own 404, says that it does not have. Any other 404 stays a failure
// of the service, because a gateway sends it too.
func asNotFound(err error, isNotFound notfound.Rule, format string, args ...any) error {
	var status *egress.StatusError
	switch {
	case !errors.As(err, &status) || status.Status != http.StatusNotFound:
		return err
	case isNotFound(status.Body):
		return vedette.Errorf(vedette.NotFound, format, args...)
	}
	return fmt.Errorf("%s answered with status 404, %s", status.Host, notfound.Hint)
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
