package manifest

import (
	"strconv"

	"github.com/vedette-io/vedette"
)

// Annotations and labels that Clouddriver adds.
const (
	artifactPrefix = "artifact.spinnaker.io/"
	monikerPrefix  = "moniker.spinnaker.io/"
	labelSequence  = monikerPrefix + "sequence"
	labelApp       = "app.kubernetes.io/name"
	labelManagedBy = "app.kubernetes.io/managed-by"
)

// metadataObjects returns the parts of a manifest that carry annotations and labels: its
// metadata, and the metadata of its template, if any.
func metadataObjects(m Manifest) []object {
	all := []object{m.metadata()}
	if template := m.templateMetadata(); template != nil {
		all = append(all, template)
	}
	return all
}

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

func annotateMoniker(m Manifest, moniker vedette.Moniker) {
	for _, meta := range metadataObjects(m) {
		for name, part := range map[string]vedette.MonikerParts{
			"application": vedette.AppPart, "cluster": vedette.ClusterPart, "stack": vedette.StackPart, "detail": vedette.DetailPart,
		} {
			if text, known := moniker.Text(part); known {
				addAnnotation(meta, monikerPrefix+name, &text)
			}
		}
		if number := sequence(moniker); moniker.Sequence != nil {
			addAnnotation(meta, labelSequence, &number)
		}
	}
}

// addAnnotation adds an annotation unless it exists. A nil value adds nothing.
func addAnnotation(meta object, key string, value *string) {
	annotations := ensureObject(meta, "annotations")
	if _, exists := annotations[key]; value != nil && !exists {
		annotations[key] = *value
	}
}

// addLabels adds the labels by which Kubernetes' tools recognize what Spinnaker deployed.
// Selectors of workloads do not change, so they must not contain these keys.
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
		app, known := moniker.Text(vedette.AppPart)
		if _, exists := labels[labelApp]; !exists && known {
			labels[labelApp] = app
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
