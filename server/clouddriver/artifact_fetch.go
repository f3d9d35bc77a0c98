package clouddriver

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// artifactAccount is what artifacts of some types are fetched with.
type artifactAccount struct {
	Name  string   `json:"name"`
	Types []string `json:"types"`
	Type  string   `json:"type"`
}

// artifactAccounts are those that Clouddriver has without being given any
// secrets. What the second one stands for are objects of clusters: editors offer
// them, and nobody fetches them.
var artifactAccounts = []artifactAccount{
	{embeddedAccount, []string{embeddedType}, "artifacts-embedded"},
	{"kubernetes", []string{"kubernetes/configMap", "kubernetes/deployment", "kubernetes/replicaSet", "kubernetes/secret"}, "artifacts-kubernetes"},
}

// embeddedType is the type of an artifact that is its own content, as a bake
// produces it and a deploy of "source: artifact" consumes it.
const (
	embeddedType    = "embedded/base64"
	embeddedAccount = "embedded-artifact"
)

// listArtifactAccounts mirrors ArtifactController.list.
func (a *api) listArtifactAccounts(w http.ResponseWriter, r *http.Request, _ pathParams) error {
	return writeJSON(w, r, artifactAccounts)
}

// fetchArtifact mirrors ArtifactController.fetch.
func (a *api) fetchArtifact(w http.ResponseWriter, r *http.Request, _ pathParams) error {
	raw, err := readBody(w, r)
	if err != nil {
		return err
	}
	var artifact manifest.Artifact
	if err := json.Unmarshal(raw, &artifact); err != nil {
		return vedette.Errorf(vedette.Invalid, "the body is no artifact: %w", err)
	}
	content, err := artifactContent(artifact)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(content) // an error means that nobody listens any more
	return nil
}

// artifactContent returns what an artifact holds.
func artifactContent(artifact manifest.Artifact) ([]byte, error) {
	if artifact.ArtifactAccount == "" {
		return nil, vedette.Errorf(vedette.Invalid, "An artifact account must be supplied to download this artifact: %.300s", artifact.Name)
	}
	if artifact.ArtifactAccount != embeddedAccount || artifact.Type != embeddedType {
		return nil, vedette.Errorf(vedette.NotFound, "Credentials '%.300s' supporting artifact type '%.300s' cannot be found: "+
			"this server fetches artifacts of type %s with account %s; bake others into one, or let Orca and Rosco fetch them from a Clouddriver that has the account",
			artifact.ArtifactAccount, artifact.Type, embeddedType, embeddedAccount)
	}
	// As Clouddriver does, it takes content with and without padding.
	content, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(artifact.Reference, "=\r\n"))
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the reference of artifact %.300q is no base64: %w", artifact.Name, err)
	}
	return content, nil
}
