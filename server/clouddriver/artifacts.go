package clouddriver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/artifacts"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/decodelimit"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/rest"
)

type artifactFetcher interface {
	Fetch(ctx context.Context, r artifacts.Request) (io.ReadCloser, error)
	Stored(ctx context.Context, application, hash string, mayRead func(context.Context, string) error) (string, error)
}

// artifactLister says what can be fetched.
type artifactLister interface {
	List() []artifacts.Account
	Names(ctx context.Context, account, artifactType string) ([]string, error)
	Versions(ctx context.Context, account, artifactType, name string) ([]string, error)
}

type artifactService interface {
	artifactFetcher
	artifactLister
}

// artifactRoutes are those of ArtifactController.
func (a *api) artifactRoutes() []web.Route {
	return []web.Route{
		web.Handle("artifacts/credentials", a.listArtifactAccounts),
		web.Handle("PUT artifacts/fetch", a.fetchArtifact),
		web.Handle("artifacts/account/{account}/names", a.listArtifactNames),
		web.Handle("artifacts/account/{account}/versions", a.listArtifactVersions),
		web.Handle("artifacts/content-address/{app}/{hash}", a.getStoredArtifact),
	}
}

// listArtifactAccounts mirrors ArtifactController.list.
func (a *api) listArtifactAccounts(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	return rest.WriteJSON(w, r, a.Artifacts.List())
}

// fetchArtifact mirrors ArtifactController.fetch.
func (a *api) fetchArtifact(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	raw, err := readBody(w, r)
	if err != nil {
		return err
	}
	var artifact manifest.Artifact
	if err := exactjson.Unmarshal(raw, &artifact, exactjson.Limits{Bytes: decodelimit.MaxBytes}); err != nil {
		return vedette.Errorf(vedette.Invalid, "the body is not an artifact: %w", err)
	}
	content, err := a.Artifacts.Fetch(r.Context(), artifacts.Request{Artifact: artifact, MayRead: a.mayReadApplication(r),
		Caller: readlimit.CallerOf(r).Source})
	if err != nil {
		return err
	}
	defer content.Close()
	return a.stream(w, r, content)
}

// mayReadApplication returns what checks whether the sender of a request may read an application.
func (a *api) mayReadApplication(r *http.Request) func(context.Context, string) error {
	caller := authorize.CallerOf(r)
	return func(ctx context.Context, application string) error {
		return a.Authorizer.CheckApplication(ctx, caller, application, authorize.Read)
	}
}

// streamTimeout is the time that a client has to take one chunk.
const streamTimeout = 30 * time.Second

// stream sends content as it is read. It returns an error if there is no content. If reading fails
// halfway, the connection is closed, because the client would otherwise take the half for the
// whole.
func (a *api) stream(w http.ResponseWriter, r *http.Request, content io.Reader) error {
	control := http.NewResponseController(w)
	chunk := make([]byte, 64<<10)
	for begun := false; ; {
		n, err := content.Read(chunk)
		if err != nil && !errors.Is(err, io.EOF) && n == 0 && !begun {
			return &artifacts.DownloadError{Message: "Unable to download the contents of the artifact: " + err.Error(), Err: err}
		}
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set(gzhttp.HeaderNoCompression, "true") // charts and archives are compressed already
		}
		if n > 0 {
			// The server's own deadline would count the time for which the source is slow.
			_ = control.SetWriteDeadline(time.Now().Add(streamTimeout))
			if _, writeErr := w.Write(chunk[:n]); writeErr != nil {
				return nil // the client is gone
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			a.Log.WarnContext(r.Context(), "an artifact was sent incompletely", "path", r.URL.Path, "error", err)
			panic(http.ErrAbortHandler)
		}
	}
}

// listArtifactNames mirrors ArtifactController.getNames.
func (a *api) listArtifactNames(w http.ResponseWriter, r *http.Request, p web.Params) error {
	artifactType, err := web.RequiredParam(r.URL.Query(), "type")
	if err != nil {
		return err
	}
	names, err := a.Artifacts.Names(r.Context(), p["account"], artifactType)
	return writeArtifactList(w, r, names, err)
}

// listArtifactVersions mirrors ArtifactController.getVersions.
func (a *api) listArtifactVersions(w http.ResponseWriter, r *http.Request, p web.Params) error {
	artifactType, err := web.RequiredParam(r.URL.Query(), "type")
	if err != nil {
		return err
	}
	name, err := web.RequiredParam(r.URL.Query(), "artifactName")
	if err != nil {
		return err
	}
	versions, err := a.Artifacts.Versions(r.Context(), p["account"], artifactType, name)
	return writeArtifactList(w, r, versions, err)
}

// writeArtifactList answers 404 without a body if the account does not exist, like Clouddriver.
func writeArtifactList(w http.ResponseWriter, r *http.Request, list []string, err error) error {
	if _, ok := errors.AsType[*artifacts.MissingError](err); ok {
		w.WriteHeader(http.StatusNotFound)
		return nil
	}
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, list)
}

// getStoredArtifact mirrors ArtifactController.getStoredArtifact.
func (a *api) getStoredArtifact(w http.ResponseWriter, r *http.Request, p web.Params) error {
	reference, err := a.Artifacts.Stored(r.Context(), p["app"], p["hash"], a.mayReadApplication(r))
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, map[string]string{"reference": reference})
}
