package manifest

import (
	"maps"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// Binding is what Bind puts into a manifest.
type Binding struct {
	Artifacts []Artifact
	// Account and Namespace are the ones that the manifest is for: a kubernetes/
	// artifact of another is not meant.
	Account   string
	Namespace string
	// MatchNameOnly replaces only images that are written as the bare name of an
	// artifact, without tag or digest.
	MatchNameOnly bool
}

// Bind replaces, in m itself, what the artifacts stand for by their references,
// in the places in which Clouddriver looks for a kind, and returns those that
// replaced something. The kind is given because a patch may not say its own. An
// artifact without a reference replaces nothing.
func Bind(kind vedette.Kind, m Manifest, b Binding) []Artifact {
	var bound []Artifact
	for _, p := range artifactFields(kind, m) {
		for _, a := range b.Artifacts {
			if p.accepts(a, b) {
				p.parent[p.key] = a.Reference
				bound = appendNew(bound, a)
			}
		}
	}
	return bound
}

// FindArtifacts returns the artifacts that a manifest refers to, each once: the images
// and the configuration of workloads, and what an autoscaler scales. The list is
// never nil.
func FindArtifacts(kind vedette.Kind, m Manifest) []Artifact {
	found := []Artifact{}
	for _, p := range artifactFields(kind, m) {
		if p.value() != "" {
			found = appendNew(found, Artifact{Type: p.artifactType, Name: p.nameOf(p.value()), Reference: p.value(), Metadata: map[string]any{}})
		}
	}
	return found
}

// artifactField is a text in a manifest that names something.
type artifactField struct {
	artifactType string // its type
	parent       object
	key          string
	nameOf       func(reference string) string
}

func (p artifactField) value() string { return stringField(p.parent, p.key) }

func (p artifactField) accepts(a Artifact, b Binding) bool {
	value := p.value()
	if a.Type != p.artifactType || a.Reference == "" || value == "" {
		return false
	}
	if strings.HasPrefix(a.Type, kubernetesArtifact) && !b.sameTarget(a) {
		return false
	}
	if b.MatchNameOnly {
		return value == a.Name
	}
	return p.nameOf(value) == a.Name
}

// sameTarget reports whether a kubernetes/ artifact is of the place that a manifest is
// for. One that tells no account may be meant.
func (b Binding) sameTarget(a Artifact) bool {
	account := stringField(a.Metadata, metadataAccount)
	return valueOr(a.Location, "") == b.Namespace && (account == "" || account == b.Account)
}

// fieldFinder lists places of one sort.
type fieldFinder func(Manifest) []artifactField

// templateFinders are the places of kinds that make pods by a template, images
// before configuration.
var templateFinders = []fieldFinder{
	inPodSpecs(func(spec object) []artifactField { return imageFields(allContainers(spec), imageName) }),
	inPodSpecs(func(spec object) (all []artifactField) {
		for _, v := range objects(spec["volumes"]) {
			all = append(all, nestedField(configMapArtifact, v, "configMap", "name"), nestedField(secretArtifact, v, "secret", "secretName"))
			for _, s := range objects(nested(v, "projected", "sources")) {
				all = append(all, nestedField(configMapArtifact, s, "configMap", "name"), nestedField(secretArtifact, s, "secret", "name"))
			}
		}
		return all
	}),
	inPodSpecs(func(spec object) (all []artifactField) {
		for _, c := range allContainers(spec) {
			for _, e := range objects(c["envFrom"]) {
				all = append(all, nestedField(configMapArtifact, e, "configMapRef", "name"), nestedField(secretArtifact, e, "secretRef", "name"))
			}
			for _, e := range objects(c["env"]) {
				from, _ := e["valueFrom"].(object)
				all = append(all, nestedField(configMapArtifact, from, "configMapKeyRef", "name"), nestedField(secretArtifact, from, "secretKeyRef", "name"))
			}
		}
		return all
	}),
}

// podFinders are the images of containers, which are compared as they stand; those
// of init containers and the configuration are left alone.
var podFinders = []fieldFinder{func(m Manifest) []artifactField {
	return imageFields(objects(nested(object(m), "spec", "containers")), fullReference)
}}

// autoscalerFinders is what they scale, as far as it may be an artifact.
var autoscalerFinders = []fieldFinder{func(m Manifest) []artifactField {
	target, _ := nested(object(m), "spec", "scaleTargetRef").(object)
	switch kind := stringField(target, "kind"); kind {
	case "Deployment", "deployment", "ReplicaSet", "replicaSet":
		return []artifactField{{kubernetesArtifact + strings.ToLower(kind[:1]) + kind[1:], target, "name", fullReference}}
	}
	return nil
}}

func artifactFields(kind vedette.Kind, m Manifest) []artifactField {
	t, _ := lookupKindInfo(kind)
	var all []artifactField
	for _, find := range t.finders {
		all = append(all, find(m)...)
	}
	return slices.DeleteFunc(all, func(p artifactField) bool { return p.parent == nil })
}

// inPodSpecs looks into the pod specs of all templates, however deep: a CronJob's
// lies in its jobTemplate.
func inPodSpecs(find func(spec object) []artifactField) fieldFinder {
	return func(m Manifest) []artifactField { return findInPodSpecs(object(m), find) }
}

func findInPodSpecs(v any, find func(object) []artifactField) (all []artifactField) {
	switch v := v.(type) {
	case object:
		if spec, ok := nested(v, "spec", "template", "spec").(object); ok {
			all = find(spec)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, findInPodSpecs(v[key], find)...)
		}
	case []any:
		for _, inner := range v {
			all = append(all, findInPodSpecs(inner, find)...)
		}
	}
	return all
}

func imageFields(containers []object, name func(string) string) (all []artifactField) {
	for _, c := range containers {
		all = append(all, artifactField{dockerImage, c, "image", name})
	}
	return all
}

func nestedField(artifactType string, parent object, child, key string) artifactField {
	reference, _ := parent[child].(object)
	return artifactField{artifactType, reference, key, fullReference}
}

func allContainers(spec object) []object {
	return slices.Concat(objects(spec["containers"]), objects(spec["initContainers"]))
}

// objects returns those elements of an array that are objects.
func objects(v any) (all []object) {
	array, _ := v.([]any)
	for _, element := range array {
		if o, ok := element.(object); ok {
			all = append(all, o)
		}
	}
	return all
}

func fullReference(reference string) string { return reference }

// imageName cuts the digest, or else what follows the last colon: of an image
// without a tag from a registry with a port that is too much, and is what
// Clouddriver does.
func imageName(image string) string {
	if name, _, ok := strings.Cut(image, "@"); ok {
		return name
	}
	if i := strings.LastIndexByte(image, ':'); i >= 0 {
		return image[:i]
	}
	return image
}
