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

// described is what of a manifest carries annotations and labels: itself, and
// its template where that has metadata.
func described(m Manifest) []object {
	all := []object{m.metadata()}
	if template := m.template(); template != nil {
		all = append(all, template)
	}
	return all
}

// annotateArtifact says what artifact a manifest is.
func annotateArtifact(m Manifest, a Artifact) {
	for _, meta := range described(m) {
		annotate(meta, artifactPrefix+"type", &a.Type)
		if a.Name != "" {
			annotate(meta, artifactPrefix+"name", &a.Name)
		}
		annotate(meta, artifactPrefix+"location", a.Location)
		annotate(meta, artifactPrefix+"version", a.Version)
	}
}

// annotateMoniker says what a manifest is grouped under.
func annotateMoniker(m Manifest, name vedette.Moniker) {
	for _, meta := range described(m) {
		for key, value := range map[string]string{
			"application": name.App, "cluster": name.Cluster, "stack": name.Stack, "detail": name.Detail, "sequence": sequence(name),
		} {
			if value != "" {
				annotate(meta, monikerPrefix+key, &value)
			}
		}
	}
}

// annotate writes an annotation that is not there yet; nil is none.
func annotate(meta object, key string, value *string) {
	annotations := within(meta, "annotations")
	if _, there := annotations[key]; value != nil && !there {
		annotations[key] = *value
	}
}

// label writes the labels by which Kubernetes' tools know who deployed what. The
// selectors of workloads are left alone, so they must not contain these keys.
func (d Deployment) label(m Manifest, name vedette.Moniker) {
	if d.Rules.SkipAppLabels {
		return
	}
	all := described(m)
	if d.SkipSpecTemplateLabels {
		all = all[:1]
	}
	manager := "spinnaker"
	if d.Rules.ManagedBySuffix != "" {
		manager += "-" + d.Rules.ManagedBySuffix
	}
	for _, meta := range all {
		labels := within(meta, "labels")
		if _, there := labels[labelApp]; !there && name.App != "" {
			labels[labelApp] = name.App
		}
		labels[labelManagedBy] = manager
		if name.Sequence != nil {
			labels[labelSequence] = sequence(name)
		}
	}
}

func sequence(name vedette.Moniker) string {
	if name.Sequence == nil {
		return ""
	}
	return strconv.Itoa(*name.Sequence)
}
