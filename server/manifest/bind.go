package manifest

import (
	"maps"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// Binding contains the artifacts for Bind.
type Binding struct {
	Artifacts []Artifact
	// Account and Namespace are those of the manifest. Kubernetes artifacts of other accounts
	// or namespaces are not used.
	Account   string
	Namespace string
	// MatchNameOnly replaces only images without tag or digest.
	MatchNameOnly bool
}

// Bind replaces references to artifacts in m, at the places that Clouddriver uses for a kind.
// It changes m, and returns the artifacts that it used. It needs the kind because patches may
// not have one. Artifacts without a reference are not used.
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

// FindArtifacts returns the artifacts that a manifest refers to, each once: images and
// configuration of workloads, and targets of autoscalers. The list is never nil.
func FindArtifacts(kind vedette.Kind, m Manifest) []Artifact {
	found := []Artifact{}
	for _, p := range artifactFields(kind, m) {
		if p.value() != "" {
			found = appendNew(found, Artifact{Type: p.artifactType, Name: p.nameOf(p.value()), Reference: p.value(), Metadata: map[string]any{}})
		}
	}
	return found
}

// artifactField is a field of a manifest that refers to an artifact.
type artifactField struct {
	artifactType string // type of the artifact
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

// sameTarget reports whether a Kubernetes artifact has the account and namespace of the
// manifest. An artifact without account matches.
func (b Binding) sameTarget(a Artifact) bool {
	account := stringField(a.Metadata, metadataAccount)
	return valueOr(a.Location, "") == b.Namespace && (account == "" || account == b.Account)
}

type fieldFinder func(Manifest) []artifactField

// templateFinders find the fields of kinds with pod templates, images before configuration.
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
				all = append(all, nestedField(configMapArtifact, from, "configMapKeyRef", "name"),
					nestedField(secretArtifact, from, "secretKeyRef", "name"))
			}
		}
		return all
	}),
}

// podFinders find the images of containers in pods. As in Clouddriver, they are compared with
// tag, and init containers and configuration are ignored.
var podFinders = []fieldFinder{func(m Manifest) []artifactField {
	return imageFields(objects(nested(object(m), "spec", "containers")), fullReference)
}}

// autoscalerFinders find the targets of autoscalers whose kind can be an artifact.
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

// inPodSpecs applies find to the pod specs of all templates at any depth. For example, a
// CronJob has one in its jobTemplate.
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

// objects returns the elements of an array that are objects.
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

// imageName removes the digest, or else everything after the last colon. This is wrong for an
// image without tag in a registry with a port, but Clouddriver does the same.
func imageName(image string) string {
	if name, _, ok := strings.Cut(image, "@"); ok {
		return name
	}
	if i := strings.LastIndexByte(image, ':'); i >= 0 {
		return image[:i]
	}
	return image
}
