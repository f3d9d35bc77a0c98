package mask

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// ManifestValues returns the values of the Secret that a manifest, in JSON, is, or of the Secrets
// that it embeds. If the manifest can't be read, or has too many values, all texts are withheld.
func ManifestValues(manifest []byte) Values {
	if IsSecretManifest(manifest) {
		return secretValues(manifest)
	}
	return embeddedValues(manifest)
}

// PatchValues returns the values of the Secret that a patch, in JSON, is for, or of the Secrets
// that it embeds. The kind is that of the object to patch, of whatever API group.
func PatchValues(kind string, patch []byte) Values {
	if IsSecretKind(kind) {
		return secretValues(patch)
	}
	return embeddedValues(patch)
}

// secretValues returns the values in a manifest or a patch of a Secret. A JSON patch is a list.
func secretValues(submitted []byte) Values {
	tree, err := decode(submitted)
	if err != nil {
		return Values{withheld: true}
	}
	v := Values{texts: map[string]int{}}
	switch t := tree.(type) {
	case map[string]any:
		v.addManifest(t)
	case []any:
		for _, step := range t {
			v.addPatchOperation(step)
		}
	default:
		v.addAll(t, minLength)
	}
	return Values{v.texts, len(v.texts) > maxTexts}
}

// embeddedValues returns the values of the Secrets in a manifest or a patch of another kind: in
// objects of kind Secret, at any depth, and in strings that are JSON.
func embeddedValues(submitted []byte) Values {
	tree, err := decode(submitted)
	if err != nil {
		return Values{}
	}
	v := Values{texts: map[string]int{}}
	v.addEmbedded(tree, false, maxLayers)
	return Values{v.texts, len(v.texts) > maxTexts}
}

// maxLayers limits how deep JSON in strings of JSON is decoded.
const maxLayers = 4

// addEmbedded walks through a tree. Of an object of kind Secret it adds only the data, because it may
// be a reference to a Secret.
func (v Values) addEmbedded(tree any, secret bool, layers int) {
	switch t := tree.(type) {
	case map[string]any:
		kind, _ := t["kind"].(string)
		secret = secret || IsSecretKind(kind)
		for name, member := range t {
			if secret && (name == "data" || name == "stringData") {
				v.addAll(member, minLength)
			} else {
				v.addEmbedded(member, secret, layers)
			}
		}
	case []any:
		for _, element := range t {
			v.addEmbedded(element, secret, layers)
		}
	case string:
		if layers == 0 || !strings.HasPrefix(strings.TrimSpace(t), "{") && !strings.HasPrefix(strings.TrimSpace(t), "[") {
			return
		}
		if inner, err := decode([]byte(t)); err == nil {
			v.addEmbedded(inner, secret, layers-1)
		}
	}
}

// maxTexts limits the texts to search for. Searching for that many takes about a second.
const maxTexts = 20_000

// IsSecretKind reports whether the name of a kind, as users write it, is that of Secrets or of a list
// of them, of whatever API group.
func IsSecretKind(kind string) bool {
	name, _, _ := strings.Cut(kind, ".")
	return strings.EqualFold(name, "Secret") || strings.EqualFold(name, "Secrets") || strings.EqualFold(name, "SecretList")
}

// IsSecretManifest reports whether a manifest, in JSON, is that of a Secret, or can't be read.
func IsSecretManifest(manifest []byte) bool {
	var members map[string]json.RawMessage // decoding into a struct would accept "KIND"
	var kind string
	if json.Unmarshal(manifest, &members) != nil || json.Unmarshal(members["kind"], &kind) != nil {
		return true
	}
	return IsSecretKind(kind)
}

func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any
	err := d.Decode(&tree)
	return tree, err
}

// publicMembers are the members of a Secret without data. Any other may have some, for example if
// "data" is misspelled.
var publicMembers = []string{"apiVersion", "kind", "metadata", "type", "immutable"}

func (v Values) addManifest(m map[string]any) {
	for name, value := range m {
		if !slices.Contains(publicMembers, name) {
			v.addAll(value, minLength)
		}
	}
	meta, _ := m["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	for name, value := range annotations {
		v.addAnnotation(name, value)
	}
}

// minAnnotationLength is the least length of a value of an annotation that is masked, because short
// ones are switches and numbers.
const minAnnotationLength = 8

// addAnnotation adds the value of an annotation, because tools store manifests in annotations.
func (v Values) addAnnotation(name string, value any) {
	if !strings.Contains(name, "spinnaker.io/") {
		v.addAll(value, minAnnotationLength)
	}
}

// publicPaths are the beginnings of the paths where a JSON patch writes no data.
var publicPaths = []string{"/metadata/labels/", "/metadata/name", "/metadata/resourceVersion", "/metadata/uid", "/metadata/finalizers"}

func (v Values) addPatchOperation(step any) {
	s, ok := step.(map[string]any)
	if !ok {
		v.addAll(step, minLength)
		return
	}
	path, _ := s["path"].(string)
	isPrefix := func(prefix string) bool { return strings.HasPrefix(path, prefix) }
	if !slices.ContainsFunc(publicPaths, isPrefix) {
		v.addAll(s["value"], minLength)
	}
}

// addAll adds all numbers of a tree, and its strings of at least minLen bytes.
func (v Values) addAll(tree any, minLen int) {
	switch t := tree.(type) {
	case map[string]any:
		for _, member := range t {
			v.addAll(member, minLen)
		}
	case []any:
		for _, element := range t {
			v.addAll(element, minLen)
		}
	case string:
		v.add(t, minLen)
	case json.Number:
		v.addNumber(t)
	}
}

// TextValues returns texts as values. If there are too many, all texts are withheld.
func TextValues(texts []string) Values {
	v := Values{texts: map[string]int{}}
	for _, text := range texts {
		v.add(text, minLength)
	}
	return Values{v.texts, len(v.texts) > maxTexts}
}
