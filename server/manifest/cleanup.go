package manifest

import (
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// Outdated returns the names of the live objects that a deployed manifest has
// taken the place of, beyond the number of versions that it wants to be kept:
// the oldest ones. The live objects are those of its kind in its namespace, in
// any order. What was just deployed is never among them, be it an old version
// that is in use again.
func Outdated(deployed Manifest, live []Manifest) []string {
	keep, said := maxVersionHistory(deployed)
	name := deployed.Annotation(artifactPrefix + "name")
	if !said || name == "" || deployed.Annotation(artifactPrefix+"type") == "" {
		return nil
	}
	var versions []Manifest
	for _, m := range live {
		if m.Annotation(artifactPrefix+"type") == kubernetesArtifact+KindName(deployed.Kind()) && m.Annotation(artifactPrefix+"name") == name {
			versions = append(versions, m)
		}
	}
	slices.SortStableFunc(versions, func(a, b Manifest) int {
		return strings.Compare(text(a.metadata(), "creationTimestamp"), text(b.metadata(), "creationTimestamp"))
	})
	var outdated []string
	for _, m := range versions[:max(0, len(versions)-keep)] {
		if m.Name() != deployed.Name() {
			outdated = append(outdated, m.Name())
		}
	}
	return outdated
}

// annotLastApplied is kubectl's copy of what it applied.
const annotLastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// WithoutSecrets returns what may be shown of a manifest: of a Secret all but
// its data, wherever that stands; of other kinds the manifest itself.
func WithoutSecrets(m Manifest) Manifest {
	if m.Kind() != (vedette.Kind{Name: "Secret"}) {
		return m
	}
	m = m.Clone()
	delete(m, "data")
	delete(m, "stringData")
	if annotations, ok := m.metadata()["annotations"].(object); ok {
		delete(annotations, annotLastApplied)
	}
	return m
}
