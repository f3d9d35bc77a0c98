package operate

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
)

// object is a JSON object. Its numbers are int64 where they are whole.
type object = map[string]any

// manifest is what a user wants an object to be.
type manifest struct {
	object
	apiVersion, kind              string
	name, generateName, namespace string
}

// parseManifest reads one object of JSON or YAML. It refuses, as Invalid, what
// no API server could take; its texts repeat nothing of the manifest but kind
// and name.
func parseManifest(raw []byte) (manifest, error) {
	o, err := parseObject(raw, "manifest")
	if err != nil {
		return manifest{}, err
	}
	m := manifest{object: o}
	meta, ok := o["metadata"].(object)
	if !ok {
		return m, vedette.Errorf(vedette.Invalid, "the manifest has no metadata")
	}
	for _, field := range []struct {
		parent object
		name   string
		dest   *string
	}{
		{o, "apiVersion", &m.apiVersion}, {o, "kind", &m.kind},
		{meta, "name", &m.name}, {meta, "generateName", &m.generateName}, {meta, "namespace", &m.namespace},
	} {
		value, isString := field.parent[field.name].(string)
		if !isString && field.parent[field.name] != nil {
			return m, vedette.Errorf(vedette.Invalid, "the manifest's %s is no text", field.name)
		}
		*field.dest = value
	}
	for _, name := range []string{"annotations", "labels"} {
		if _, isObject := meta[name].(object); !isObject && meta[name] != nil {
			return m, vedette.Errorf(vedette.Invalid, "the %s of the manifest are no object", name)
		}
	}
	return m, m.validate()
}

func (m manifest) validate() error {
	switch {
	case m.apiVersion == "":
		return vedette.Errorf(vedette.Invalid, "the manifest has no apiVersion")
	case m.kind == "":
		return vedette.Errorf(vedette.Invalid, "the manifest has no kind")
	case m.name == "" && m.generateName == "":
		return vedette.Errorf(vedette.Invalid, "the manifest of kind %s has no metadata.name", m.kind)
	case m.name == "":
		return nil
	}
	return checkName(m.name)
}

func (m manifest) meta() object { return m.object["metadata"].(object) } // parseManifest saw to it

// annotation returns an annotation, or "".
func (m manifest) annotation(key string) string {
	annotations, _ := m.meta()["annotations"].(object)
	value, _ := annotations[key].(string)
	return value
}

// encode encodes the manifest.
func (m manifest) encode() []byte {
	raw, err := json.Marshal(m.object)
	if err != nil { // what was decoded can be encoded
		panic(err)
	}
	return raw
}

// parseObject reads one object of JSON or YAML; what says what it is, for texts.
func parseObject(raw []byte, what string) (object, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, vedette.Errorf(vedette.Invalid, "the %s is empty", what)
	}
	if raw[0] != '{' {
		var err error
		if raw, err = yamlToJSON(raw, what); err != nil {
			return nil, err
		}
	}
	var value any
	if err := kjson.Unmarshal(raw, &value); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the %s is no JSON%s", what, syntaxErrorOffset(err))
	}
	o, ok := value.(object)
	if !ok {
		return nil, vedette.Errorf(vedette.Invalid, "the %s is no object", what)
	}
	return o, nil
}

// syntaxErrorOffset says where JSON is broken, without quoting it.
func syntaxErrorOffset(err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf(": it is broken at byte %d", syntax.Offset)
	}
	return ""
}

var yamlLine = regexp.MustCompile(`line \d+`)

// yamlToJSON turns one document into JSON. A second document is refused, because
// the decoder would pass over it in silence.
func yamlToJSON(raw []byte, what string) ([]byte, error) {
	documents := yaml3.NewDecoder(bytes.NewReader(raw))
	var first, second yaml3.Node
	if err := documents.Decode(&first); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the %s is neither JSON nor YAML: look at %s", what, yamlErrorLine(err))
	}
	if err := documents.Decode(&second); !errors.Is(err, io.EOF) && !(err == nil && second.IsZero()) {
		return nil, vedette.Errorf(vedette.Invalid, "the %s holds more than one document: send each as an operation of its own", what)
	}
	converted, err := yaml.YAMLToJSON(raw)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the %s is neither JSON nor YAML: look at %s", what, yamlErrorLine(err))
	}
	return converted, nil
}

// yamlErrorLine says where YAML is broken: the decoder's own words quote values.
func yamlErrorLine(err error) string {
	if line := yamlLine.FindString(err.Error()); line != "" {
		return line
	}
	return "its indentation"
}
