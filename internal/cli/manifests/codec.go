package manifests

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/textcheck"
)

// NewList returns a List of objects, as kubectl prints several objects.
func NewList(items []any) any {
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": items}
}

// Decode decodes a manifest. Numbers stay json.Number, because float64 would change large
// integers.
func Decode(raw json.RawMessage) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var m map[string]any
	err := decoder.Decode(&m)
	return m, err
}

// WithAccountAnnotation decodes the manifest of an object and adds its account as an
// annotation.
func WithAccountAnnotation(o client.Object) (map[string]any, error) {
	m, err := Decode(o.Manifest)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", output.ObjectPath(o.Account, o.Kind, o.Namespace, o.Name), err)
	}
	metadata := EnsureMap(m, "metadata")
	EnsureMap(metadata, "annotations")[vedette.AccountAnnotation] = o.Account
	return m, nil
}

// EnsureMap returns the member of m with the given name, which it replaces by an empty map if
// it is not a map.
func EnsureMap(m map[string]any, name string) map[string]any {
	inner, ok := m[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
		m[name] = inner
	}
	return inner
}

// WithNamespace returns the manifest with the given namespace. It returns manifests that it
// cannot decode as they are.
func WithNamespace(raw json.RawMessage, namespace string) json.RawMessage {
	m, err := Decode(raw)
	if err != nil || namespace == "" {
		return raw
	}
	EnsureMap(m, "metadata")["namespace"] = namespace
	updated, err := json.Marshal(m)
	if err != nil { // impossible: m was decoded from JSON
		panic(err)
	}
	return updated
}

// Encode returns a document as indented JSON or, if the format is yaml, as YAML.
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
		text, err = yaml.JSONToYAML([]byte(textcheck.EscapeJSON(string(text)))) // YAML rejects control characters that JSON may have
		if err != nil {
			return "", fmt.Errorf("write YAML: %w", err)
		}
	}
	encoded := string(bytes.TrimRight(text, "\n"))
	if format == "yaml" {
		return encoded, nil
	}
	return textcheck.EscapeJSON(encoded), nil
}
