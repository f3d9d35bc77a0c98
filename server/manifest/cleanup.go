package manifest

import (
	"maps"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/mask"
)

// Outdated returns the names of the oldest live objects that exceed the number of versions to
// keep for a deployed manifest. live are the objects of its kind in its namespace, in any
// order. The deployed object is never included, even if it is an old version that is in use
// again.
func Outdated(deployed Manifest, live []Manifest) []string {
	keep, isLimited := maxVersionHistory(deployed)
	name := deployed.artifactAnnotation("name")
	if !isLimited || name == "" || deployed.artifactAnnotation("type") == "" {
		return nil
	}
	var versions []Manifest
	for _, m := range live {
		if m.artifactAnnotation("type") == kubernetesArtifact+KindName(deployed.Kind()) && m.artifactAnnotation("name") == name {
			versions = append(versions, m)
		}
	}
	slices.SortStableFunc(versions, func(a, b Manifest) int {
		return strings.Compare(stringField(a.metadata(), "creationTimestamp"), stringField(b.metadata(), "creationTimestamp"))
	})
	var outdated []string
	for _, m := range versions[:max(0, len(versions)-keep)] {
		if m.Name() != deployed.Name() {
			outdated = append(outdated, m.Name())
		}
	}
	return outdated
}

// artifactAnnotation returns what an annotation says about the artifact that a manifest was
// deployed as, for example its "name".
func (m Manifest) artifactAnnotation(part string) string {
	return vedette.UnquoteAnnotation(m.Annotation(artifactPrefix + part))
}

// WithoutSecrets returns the part of a manifest that may be shown: of a Secret only its
// identity, of other kinds the whole manifest.
func WithoutSecrets(m Manifest) Manifest {
	if kind := m.Kind(); kind.Group != "" || !mask.IsSecretKind(kind.Name) {
		return m
	}
	m = m.Clone()
	maps.DeleteFunc(m, func(name string, _ any) bool { return !slices.Contains(safeSecretFields, name) })
	if annotations, ok := m.metadata()["annotations"].(object); ok {
		maps.DeleteFunc(annotations, func(name string, _ any) bool { return !strings.Contains(name, ".spinnaker.io/") })
	}
	return m
}

// safeSecretFields are the fields of a Secret without data. Unknown fields can have data, for
// example if "data" is misspelt.
var safeSecretFields = []string{"apiVersion", "kind", "metadata", "type", "immutable"}
