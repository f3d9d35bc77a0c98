package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// The types of artifact that manifests refer to.
const (
	dockerImage        = "docker/image"
	kubernetesArtifact = "kubernetes/" // and a kind's name
	configMapArtifact  = kubernetesArtifact + "configMap"
	secretArtifact     = kubernetesArtifact + "secret"
	metadataAccount    = "account" // in the metadata
)

// Artifact is something that a manifest refers to and a pipeline may replace, or
// what a deployment makes. Its JSON is Spinnaker's. Version and Location are nil
// where nothing is said, which is not the same there as "".
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

// MarshalJSON writes metadata always.
func (a Artifact) MarshalJSON() ([]byte, error) {
	type plain Artifact
	if a.Metadata == nil {
		a.Metadata = map[string]any{}
	}
	return json.Marshal(plain(a))
}

// UnmarshalJSON keeps the numbers of the metadata.
func (a *Artifact) UnmarshalJSON(raw []byte) error {
	type plain Artifact
	return decode(raw, (*plain)(a))
}

// newArtifact is the artifact that a deployed manifest is. Its name is the one without
// the version, which is negative where there is none.
func newArtifact(m Manifest, account string, version int) Artifact {
	name, location, versionText := m.Name(), m.Namespace(), versionName(version)
	return Artifact{Type: kubernetesArtifact + KindName(m.Kind()), Name: name, Version: &versionText, Location: &location,
		Reference: versionedName(name, version), Metadata: map[string]any{metadataAccount: account}}
}

// versionName returns "v003", or "" of a negative number.
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

// sameArtifact reports whether one artifact stands for the other: what a deployment
// makes takes the place of what the pipeline brought.
func (a Artifact) sameArtifact(b Artifact) bool {
	return a.Type == b.Type && a.Name == b.Name && valueOr(a.Location, "") == valueOr(b.Location, "")
}

// putArtifact replaces the artifact that stands for the same thing, or adds it.
func putArtifact(all []Artifact, a Artifact) []Artifact {
	if index := slices.IndexFunc(all, a.sameArtifact); index >= 0 {
		all[index] = a
		return all
	}
	return append(all, a)
}

// appendNew adds what is not there yet.
func appendNew(all []Artifact, more ...Artifact) []Artifact {
	for _, a := range more {
		if !slices.ContainsFunc(all, func(b Artifact) bool { return reflect.DeepEqual(a, b) }) {
			all = append(all, a)
		}
	}
	return all
}

// CheckBound returns an error that names the required artifacts that are not among
// the bound ones; nil where there are none. Accounts are not compared, since
// what a stage requires has one and what a trigger brings may not.
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

// key is what artifacts are compared by, written as Clouddriver prints it.
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
