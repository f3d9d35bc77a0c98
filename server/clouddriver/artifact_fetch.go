package clouddriver

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// artifactAccount is an account with which artifacts of some types are fetched.
type artifactAccount struct {
	Name  string   `json:"name"`
	Types []string `json:"types"`
	Type  string   `json:"type"`
}

// artifactAccounts are the accounts that Clouddriver has without any configuration. The
// artifacts of the second one are objects in clusters: editors offer them, but they cannot be
// fetched.
var artifactAccounts = []artifactAccount{
	{embeddedAccount, []string{embeddedType}, "artifacts-embedded"},
	{"kubernetes", []string{"kubernetes/configMap", "kubernetes/deployment", "kubernetes/replicaSet", "kubernetes/secret"},
		"artifacts-kubernetes"},
}

// embeddedType is the type of artifacts that contain their own content. A bake produces them,
// and a deployment with "source: artifact" consumes them.
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
		return vedette.Errorf(vedette.Invalid, "the body is not an artifact: %w", err)
	}
	content, err := artifactContent(artifact)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(content) // an error means that the client is gone
	return nil
}

func artifactContent(artifact manifest.Artifact) ([]byte, error) {
	if artifact.ArtifactAccount == "" {
		return nil, vedette.Errorf(vedette.Invalid, "An artifact account must be supplied to download this artifact: %.300s", artifact.Name)
	}
	if artifact.ArtifactAccount != embeddedAccount || artifact.Type != embeddedType {
		return nil, vedette.Errorf(vedette.NotFound, "Credentials '%.300s' supporting artifact type '%.300s' cannot be found: "+
			"this server can only fetch artifacts of type %s with account %s; bake the artifact into one of these, or let Orca and Rosco fetch it from a Clouddriver that has the account",
			artifact.ArtifactAccount, artifact.Type, embeddedType, embeddedAccount)
	}
	// Clouddriver accepts content with and without padding.
	content, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(artifact.Reference, "=\r\n"))
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the reference of artifact %.300q is not valid base64: %w", artifact.Name, err)
	}
	return content, nil
}
