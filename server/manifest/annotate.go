package manifest

import (
	"strconv"

	"github.com/vedette-io/vedette"
)

// The annotations and labels that Clouddriver writes.
const (
	artifactPrefix = "artifact.spinnaker.io/"
	monikerPrefix  = "moniker.spinnaker.io/"
	labelSequence  = monikerPrefix + "sequence"
	labelApp       = "app.kubernetes.io/name"
	labelManagedBy = "app.kubernetes.io/managed-by"
)

// metadataObjects is what of a manifest carries annotations and labels: itself, and
// its template where that has metadata.
func metadataObjects(m Manifest) []object {
	all := []object{m.metadata()}
	if template := m.templateMetadata(); template != nil {
		all = append(all, template)
	}
	return all
}

// annotateArtifact says what artifact a manifest is.
func annotateArtifact(m Manifest, a Artifact) {
	for _, meta := range metadataObjects(m) {
		addAnnotation(meta, artifactPrefix+"type", &a.Type)
		if a.Name != "" {
			addAnnotation(meta, artifactPrefix+"name", &a.Name)
		}
		addAnnotation(meta, artifactPrefix+"location", a.Location)
		addAnnotation(meta, artifactPrefix+"version", a.Version)
	}
}

// annotateMoniker says what a manifest is grouped under.
func annotateMoniker(m Manifest, moniker vedette.Moniker) {
	for _, meta := range metadataObjects(m) {
		for key, value := range map[string]string{
			"application": moniker.App, "cluster": moniker.Cluster, "stack": moniker.Stack, "detail": moniker.Detail, "sequence": sequence(moniker),
		} {
			if value != "" {
				addAnnotation(meta, monikerPrefix+key, &value)
			}
		}
	}
}

// addAnnotation writes an annotation that is not there yet; nil is none.
func addAnnotation(meta object, key string, value *string) {
	annotations := ensureObject(meta, "annotations")
	if _, exists := annotations[key]; value != nil && !exists {
		annotations[key] = *value
	}
}

// addLabels writes the labels by which Kubernetes' tools know who deployed what. The
// selectors of workloads are left alone, so they must not contain these keys.
func (d DeployDescription) addLabels(m Manifest, moniker vedette.Moniker) {
	if d.Rules.SkipAppLabels {
		return
	}
	all := metadataObjects(m)
	if d.SkipSpecTemplateLabels {
		all = all[:1]
	}
	manager := "spinnaker"
	if d.Rules.ManagedBySuffix != "" {
		manager += "-" + d.Rules.ManagedBySuffix
	}
	for _, meta := range all {
		labels := ensureObject(meta, "labels")
		if _, exists := labels[labelApp]; !exists && moniker.App != "" {
			labels[labelApp] = moniker.App
		}
		labels[labelManagedBy] = manager
		if moniker.Sequence != nil {
			labels[labelSequence] = sequence(moniker)
		}
	}
}

func sequence(moniker vedette.Moniker) string {
	if moniker.Sequence == nil {
		return ""
	}
	return strconv.Itoa(*moniker.Sequence)
}
