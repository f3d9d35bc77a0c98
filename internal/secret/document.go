package secret

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vedette-io/vedette"
)

// JSONKey returns the value of a key of a JSON object. A string is returned without quotes, anything
// else as JSON.
func JSONKey(document []byte, key string) (string, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(document, &members) != nil {
		return "", vedette.Errorf(vedette.Invalid, "the secret is not a JSON object, so that it has no key %q", key)
	}
	member, ok := members[key]
	if !ok || string(member) == "null" {
		return "", vedette.Errorf(vedette.NotFound, "the secret has no key %q", key)
	}
	var text string
	if json.Unmarshal(member, &text) == nil {
		return text, nil
	}
	return string(member), nil
}

// YAMLKey returns the single value at a path of a YAML document. The keys of the path are separated by
// dots; keys in the document may contain dots too.
func YAMLKey(document []byte, path string) (string, error) {
	var root yaml.Node
	// The library's errors may quote the document.
	if yaml.Unmarshal(document, &root) != nil || len(root.Content) == 0 {
		return "", vedette.Errorf(vedette.Invalid, "the file is not YAML, so that it has no key %q", path)
	}
	found := lookup(root.Content[0], path)
	switch {
	case found == nil || found.ShortTag() == "!!null":
		return "", vedette.Errorf(vedette.NotFound, "the file has no key %q", path)
	case found.Kind != yaml.ScalarNode:
		return "", vedette.Errorf(vedette.Invalid, "the key %q of the file must have a single value", path)
	}
	return found.Value, nil
}

// lookup returns the node at a path, or nil. Each step makes the path shorter, so that aliases that
// refer to themselves end.
func lookup(n *yaml.Node, path string) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if path == "" {
		return n
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		rest, ok := cutKey(path, n.Content[i].Value)
		if !ok {
			continue
		}
		if found := lookup(n.Content[i+1], rest); found != nil {
			return found
		}
	}
	return nil
}

// cutKey removes the first key of a path.
func cutKey(path, key string) (rest string, ok bool) {
	if path == key {
		return "", true
	}
	if key == "" {
		return "", false
	}
	return strings.CutPrefix(path, key+".")
}

// DecodeBase64 decodes a secret that is base64, with or without line breaks and padding.
func DecodeBase64(text string) (string, error) {
	compact := strings.TrimRight(strings.Join(strings.Fields(text), ""), "=")
	decoded, err := base64.RawStdEncoding.DecodeString(compact)
	if err != nil {
		return "", vedette.Errorf(vedette.Invalid, "the secret is not base64")
	}
	return string(decoded), nil
}

// WholeOrYAMLKey selects a path of a YAML document, or the whole document if the path is empty.
func WholeOrYAMLKey(path string) func(document []byte) (string, error) {
	if path == "" {
		return Whole
	}
	return func(document []byte) (string, error) { return YAMLKey(document, path) }
}
