package manifests

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

// AccountAnnotation tells in a manifest from which account it is: the manifest
// itself does not know.
const AccountAnnotation = "vedette.io/account"

func NewList(items []any) any {
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": items}
}

// Decode reads a manifest whose numbers stay as they are written.
func Decode(raw json.RawMessage) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var m map[string]any
	err := decoder.Decode(&m)
	return m, err
}

// WithAccountAnnotation decodes a manifest and notes its account in it.
func WithAccountAnnotation(o client.Object) (map[string]any, error) {
	m, err := Decode(o.Manifest)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", output.ObjectPath(o.Account, o.Kind, o.Namespace, o.Name), err)
	}
	metadata := EnsureMap(m, "metadata")
	EnsureMap(metadata, "annotations")[AccountAnnotation] = o.Account
	return m, nil
}

// EnsureMap returns an object within an object, and makes it where it is not.
func EnsureMap(m map[string]any, name string) map[string]any {
	inner, ok := m[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
		m[name] = inner
	}
	return inner
}

// WithNamespace is a manifest with the namespace that a flag gave it.
func WithNamespace(raw json.RawMessage, namespace string) json.RawMessage {
	m, err := Decode(raw)
	if err != nil || namespace == "" {
		return raw
	}
	EnsureMap(m, "metadata")["namespace"] = namespace
	updated, err := json.Marshal(m)
	if err != nil { // it was decoded
		panic(err)
	}
	return updated
}

func Encode(document any, format string) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(document); err != nil {
		return "", fmt.Errorf("write JSON: %w", err)
	}
	text := b.Bytes()
	if format == "yaml" {
		var err error
		if text, err = yaml.JSONToYAML(text); err != nil {
			return "", fmt.Errorf("write YAML: %w", err)
		}
	}
	return string(bytes.TrimRight(text, "\n")), nil
}
