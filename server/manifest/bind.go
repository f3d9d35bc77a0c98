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
	for _, p := range placesIn(kind, m) {
		for _, a := range b.Artifacts {
			if p.takes(a, b) {
				p.in[p.key] = a.Reference
				bound = add(bound, a)
			}
		}
	}
	return bound
}

// Found returns the artifacts that a manifest refers to, each once: the images
// and the configuration of workloads, and what an autoscaler scales. The list is
// never nil.
func Found(kind vedette.Kind, m Manifest) []Artifact {
	found := []Artifact{}
	for _, p := range placesIn(kind, m) {
		if p.value() != "" {
			found = add(found, Artifact{Type: p.artifact, Name: p.name(p.value()), Reference: p.value(), Metadata: map[string]any{}})
		}
	}
	return found
}

// place is a text in a manifest that names something.
type place struct {
	artifact string // its type
	in       object
	key      string
	name     func(reference string) string
}

func (p place) value() string { return text(p.in, p.key) }

func (p place) takes(a Artifact, b Binding) bool {
	value := p.value()
	if a.Type != p.artifact || a.Reference == "" || value == "" {
		return false
	}
	if strings.HasPrefix(a.Type, kubernetesArtifact) && !b.owns(a) {
		return false
	}
	if b.MatchNameOnly {
		return value == a.Name
	}
	return p.name(value) == a.Name
}

// owns reports whether a kubernetes/ artifact is of the place that a manifest is
// for. One that tells no account may be meant.
func (b Binding) owns(a Artifact) bool {
	account := text(a.Metadata, accountOfAnArtifact)
	return or(a.Location, "") == b.Namespace && (account == "" || account == b.Account)
}

// finder lists places of one sort.
type finder func(Manifest) []place

// ofTemplates are the places of kinds that make pods by a template, images
// before configuration.
var ofTemplates = []finder{
	eachSpec(func(spec object) []place { return images(containers(spec), imageName) }),
	eachSpec(func(spec object) (all []place) {
		for _, v := range objects(spec["volumes"]) {
			all = append(all, named(configMapArtifact, v, "configMap", "name"), named(secretArtifact, v, "secret", "secretName"))
			for _, s := range objects(dig(v, "projected", "sources")) {
				all = append(all, named(configMapArtifact, s, "configMap", "name"), named(secretArtifact, s, "secret", "name"))
			}
		}
		return all
	}),
	eachSpec(func(spec object) (all []place) {
		for _, c := range containers(spec) {
			for _, e := range objects(c["envFrom"]) {
				all = append(all, named(configMapArtifact, e, "configMapRef", "name"), named(secretArtifact, e, "secretRef", "name"))
			}
			for _, e := range objects(c["env"]) {
				from, _ := e["valueFrom"].(object)
				all = append(all, named(configMapArtifact, from, "configMapKeyRef", "name"), named(secretArtifact, from, "secretKeyRef", "name"))
			}
		}
		return all
	}),
}

// ofPods are the images of containers, which are compared as they stand; those
// of init containers and the configuration are left alone.
var ofPods = []finder{func(m Manifest) []place {
	return images(objects(dig(object(m), "spec", "containers")), whole)
}}

// ofAutoscalers is what they scale, as far as it may be an artifact.
var ofAutoscalers = []finder{func(m Manifest) []place {
	target, _ := dig(object(m), "spec", "scaleTargetRef").(object)
	switch kind := text(target, "kind"); kind {
	case "Deployment", "deployment", "ReplicaSet", "replicaSet":
		return []place{{kubernetesArtifact + strings.ToLower(kind[:1]) + kind[1:], target, "name", whole}}
	}
	return nil
}}

func placesIn(kind vedette.Kind, m Manifest) []place {
	t, _ := traitOf(kind)
	var all []place
	for _, find := range t.places {
		all = append(all, find(m)...)
	}
	return slices.DeleteFunc(all, func(p place) bool { return p.in == nil })
}

// eachSpec looks into the pod specs of all templates, however deep: a CronJob's
// lies in its jobTemplate.
func eachSpec(places func(spec object) []place) finder {
	return func(m Manifest) []place { return eachSpecIn(object(m), places) }
}

func eachSpecIn(v any, places func(object) []place) (all []place) {
	switch v := v.(type) {
	case object:
		if spec, ok := dig(v, "spec", "template", "spec").(object); ok {
			all = places(spec)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, eachSpecIn(v[key], places)...)
		}
	case []any:
		for _, inner := range v {
			all = append(all, eachSpecIn(inner, places)...)
		}
	}
	return all
}

func images(containers []object, name func(string) string) (all []place) {
	for _, c := range containers {
		all = append(all, place{dockerImage, c, "image", name})
	}
	return all
}

func named(artifact string, in object, inner, key string) place {
	reference, _ := in[inner].(object)
	return place{artifact, reference, key, whole}
}

func containers(spec object) []object {
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

func whole(reference string) string { return reference }

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
