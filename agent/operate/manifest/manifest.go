// Package manifest reads the manifests that users submit, and walks through objects as trees.
// It sends no requests.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	kjson "k8s.io/apimachinery/pkg/util/json"

	yaml3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/yamlcount"
)

// object is a JSON object. Whole numbers in it are int64.
type object = map[string]any

// Manifest is one object as a user wants it to be. The fields beside Object are those that the
// manifest had when it was read.
type Manifest struct {
	Object                        map[string]any
	APIVersion, Kind              string
	Name, GenerateName, Namespace string
	// IsOutput is true if the manifest had vedette.AccountAnnotation, which Parse removes: then it was printed by the
	// command line.
	IsOutput bool
}

// Parse reads one object from JSON or YAML. It rejects, as Invalid, manifests that no API server
// would accept. Its errors quote only the kind and the name, because other values may be secret.
func Parse(raw []byte) (Manifest, error) {
	o, err := ParseObject(raw, "manifest")
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{Object: o}
	meta, ok := o["metadata"].(object)
	if !ok {
		return m, vedette.Errorf(vedette.Invalid, "the manifest has no metadata")
	}
	for _, field := range []struct {
		parent object
		name   string
		dest   *string
	}{
		{o, "apiVersion", &m.APIVersion}, {o, "kind", &m.Kind},
		{meta, "name", &m.Name}, {meta, "generateName", &m.GenerateName}, {meta, "namespace", &m.Namespace},
	} {
		value, isString := field.parent[field.name].(string)
		if !isString && field.parent[field.name] != nil {
			return m, vedette.Errorf(vedette.Invalid, "the manifest's %s is not a string", field.name)
		}
		*field.dest = value
	}
	for _, name := range []string{"annotations", "labels"} {
		if _, isObject := meta[name].(object); !isObject && meta[name] != nil {
			return m, vedette.Errorf(vedette.Invalid, "the %s of the manifest are not an object", name)
		}
	}
	m.IsOutput = removeAccount(meta)
	return m, m.validate()
}

func (m Manifest) validate() error {
	switch {
	case m.APIVersion == "":
		return vedette.Errorf(vedette.Invalid, "the manifest has no apiVersion")
	case m.Kind == "":
		return vedette.Errorf(vedette.Invalid, "the manifest has no kind")
	case m.Name == "" && m.GenerateName == "":
		return vedette.Errorf(vedette.Invalid, "the manifest of kind %s has no metadata.name", m.Kind)
	case m.Name == "":
		return nil
	}
	return CheckName(m.Name)
}

// Meta returns the metadata, which the caller may change. Parse ensures that it is an object.
func (m Manifest) Meta() map[string]any { return m.Object["metadata"].(object) }

// Annotation returns the value of an annotation, empty if the manifest does not have it.
func (m Manifest) Annotation(key string) string {
	annotations, _ := m.Meta()["annotations"].(object)
	value, _ := annotations[key].(string)
	return value
}

// Encode returns the manifest as JSON.
func (m Manifest) Encode() []byte {
	raw, err := json.Marshal(m.Object)
	if err != nil { // what was decoded can be encoded
		panic(err)
	}
	return raw
}

// ParseObject reads one object from JSON or YAML. Errors call it what.
func ParseObject(raw []byte, what string) (map[string]any, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, vedette.Errorf(vedette.Invalid, "the %s is empty", what)
	}
	if raw[0] != '{' {
		var err error
		raw, err = YAMLToJSON(raw, what)
		if err != nil {
			return nil, err
		}
	}
	var value any
	if err := kjson.Unmarshal(raw, &value); err != nil {
		var ignored json.RawMessage
		err = json.Unmarshal(raw, &ignored) // because errors of kjson do not export the offset
		return nil, vedette.Errorf(vedette.Invalid, "the %s is not JSON%s", what, SyntaxErrorOffset(err))
	}
	if err := exactjson.Check(raw); err != nil { // a member occurs twice, so that others may read another one
		return nil, vedette.Errorf(vedette.Invalid, "the %s is not JSON%s", what, SyntaxErrorOffset(err))
	}
	o, ok := value.(object)
	if !ok {
		return nil, vedette.Errorf(vedette.Invalid, "the %s is not a JSON object", what)
	}
	return o, nil
}

// Decode reads a JSON document whose memory the caller has reserved. Names of members count as they are written, and a
// document in which one occurs twice is an error.
func Decode(raw []byte, into any) error {
	return exactjson.Unmarshal(raw, into, exactjson.Limits{Bytes: exactjson.Unlimited})
}

// SyntaxErrorOffset returns where a syntax error is, as the end of a message, without quoting the
// text around it, which may be secret. It is empty for other errors.
func SyntaxErrorOffset(err error) string {
	var syntax *json.SyntaxError
	var exact *exactjson.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf(": syntax error at byte %d", syntax.Offset)
	case errors.As(err, &exact):
		return ": " + exact.Error()
	}
	return ""
}

var yamlLine = regexp.MustCompile(`line \d+`)

// YAMLToJSON converts one YAML document to JSON. A second document is rejected, because the
// decoder would ignore it silently.
func YAMLToJSON(raw []byte, what string) ([]byte, error) {
	if n := yamlcount.Values(raw); n > yamlcount.MaxManifest {
		return nil, vedette.Errorf(vedette.Invalid, "the %s has about %d values, more than the %d that YAML may have: send it as JSON", what, n, yamlcount.MaxManifest)
	}
	documents := yaml3.NewDecoder(bytes.NewReader(raw))
	var first, second yaml3.Node
	if err := documents.Decode(&first); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the %s is neither JSON nor YAML: check %s", what, yamlErrorLine(err))
	}
	if !yamlcount.Expanded(&first).IsManifest() {
		return nil, vedette.Errorf(vedette.Invalid, "the %s becomes more than %d values, or %d MiB of JSON, when its aliases are replaced: send it as JSON",
			what, yamlcount.MaxManifest, yamlcount.MaxManifestBytes>>20)
	}
	if err := documents.Decode(&second); !errors.Is(err, io.EOF) && !(err == nil && second.IsZero()) {
		return nil, vedette.Errorf(vedette.Invalid, "the %s contains more than one document: send each as its own operation", what)
	}
	converted, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the %s is neither JSON nor YAML: check %s", what, yamlErrorLine(err))
	}
	return converted, nil
}

// yamlErrorLine returns where the YAML is invalid. The decoder's message is not used, because it
// quotes values.
func yamlErrorLine(err error) string {
	if line := yamlLine.FindString(err.Error()); line != "" {
		return line
	}
	return "its indentation"
}
