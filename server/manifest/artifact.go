package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// Types of artifacts that manifests refer to.
const (
	dockerImage        = "docker/image"
	kubernetesArtifact = "kubernetes/" // followed by the name of a kind
	configMapArtifact  = kubernetesArtifact + "configMap"
	secretArtifact     = kubernetesArtifact + "secret"
	metadataAccount    = "account" // a key of the metadata
)

// Artifact is something that a manifest refers to and a pipeline can replace, or the result of
// a deployment. Its JSON is Spinnaker's. Version and Location are nil if they are missing,
// because Spinnaker distinguishes that from "".
type Artifact struct {
	Type            string         `json:"type,omitempty"`
	CustomKind      bool           `json:"customKind"`
	Name            string         `json:"name,omitempty"`
	Version         *string        `json:"version,omitempty"`
	Location        *string        `json:"location,omitempty"`
	Reference       string         `json:"reference,omitempty"`
	Metadata        map[string]any `json:"metadata"`
	ArtifactAccount string         `json:"artifactAccount,omitempty"`
	Provenance      string         `json:"provenance,omitempty"`
	UUID            string         `json:"uuid,omitempty"`
}

// MarshalJSON always writes metadata.
func (a Artifact) MarshalJSON() ([]byte, error) {
	type plain Artifact
	if a.Metadata == nil {
		a.Metadata = map[string]any{}
	}
	return json.Marshal(plain(a))
}

// UnmarshalJSON preserves the numbers in the metadata.
func (a *Artifact) UnmarshalJSON(raw []byte) error {
	type plain Artifact
	return decode(raw, (*plain)(a))
}

// newArtifact returns the artifact of a deployed manifest. Its name is without the version. A
// negative version means none.
func newArtifact(m Manifest, account string, version int) Artifact {
	name := m.Name()
	location := m.Namespace()
	versionText := versionName(version)
	return Artifact{Type: kubernetesArtifact + KindName(m.Kind()), Name: name, Version: &versionText, Location: &location,
		Reference: versionedName(name, version), Metadata: map[string]any{metadataAccount: account}}
}

// versionName returns "v003", or "" for a negative number.
func versionName(version int) string {
	if version < 0 {
		return ""
	}
	return fmt.Sprintf("v%03d", version)
}

func versionedName(name string, version int) string {
	if version < 0 {
		return name
	}
	return name + "-" + versionName(version)
}

// sameArtifact reports whether two artifacts are the same except for version and reference.
// The result of a deployment replaces the pipeline's artifact.
func (a Artifact) sameArtifact(b Artifact) bool {
	return a.Type == b.Type && a.Name == b.Name && valueOr(a.Location, "") == valueOr(b.Location, "")
}

// putArtifact replaces the same artifact in the list, or adds it.
func putArtifact(all []Artifact, a Artifact) []Artifact {
	if index := slices.IndexFunc(all, a.sameArtifact); index >= 0 {
		all[index] = a
		return all
	}
	return append(all, a)
}

func appendNew(all []Artifact, more ...Artifact) []Artifact {
	for _, a := range more {
		if !slices.ContainsFunc(all, func(b Artifact) bool { return reflect.DeepEqual(a, b) }) {
			all = append(all, a)
		}
	}
	return all
}

// CheckBound returns an error that names the required artifacts that are not bound, or nil if
// all are. Accounts are not compared, because artifacts of a stage have one and artifacts of a
// trigger may not.
func CheckBound(required, bound []Artifact) error {
	var missing []string
	for _, a := range required {
		sameKey := func(b Artifact) bool { return a.key() == b.key() }
		if !slices.ContainsFunc(bound, sameKey) && !slices.Contains(missing, a.key()) {
			missing = append(missing, a.key())
		}
	}
	if missing == nil {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "The following required artifacts could not be bound: '[%s]'. "+
		"Check that the Docker image name above matches the name used in the image field of your manifest. "+
		"Failing the stage as this is likely a configuration error.", strings.Join(missing, ", "))
}

// key returns the key by which artifacts are compared, in the form that Clouddriver prints.
func (a Artifact) key() string {
	return fmt.Sprintf("ArtifactKey(type=%s, name=%s, version=%s, location=%s, reference=%s)",
		orNull(a.Type), orNull(a.Name), valueOr(a.Version, "null"), valueOr(a.Location, "null"), orNull(a.Reference))
}

func valueOr(s *string, fallback string) string {
	if s == nil {
		return fallback
	}
	return *s
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}
