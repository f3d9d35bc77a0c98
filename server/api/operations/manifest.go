package operations

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"

	yaml3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/yamlcount"
)

// manifest is a manifest with the fields that this package reads.
type manifest struct {
	raw      []byte // JSON
	Kind     string `json:"kind"`
	Metadata struct {
		Name         string `json:"name"`
		GenerateName string `json:"generateName"`
	} `json:"metadata"`
}

// parseManifest parses one object, either JSON or YAML. Errors do not quote it, because it
// can be a Secret.
func parseManifest(document []byte) (manifest, error) {
	m := manifest{raw: document}
	if !bytes.HasPrefix(bytes.TrimSpace(document), []byte("{")) || !json.Valid(document) {
		var err error
		m.raw, err = yamlDocumentToJSON(string(document))
		if err != nil {
			return m, err
		}
	}
	m.raw = bytes.TrimSpace(m.raw)
	if len(m.raw) == 0 || m.raw[0] != '{' {
		return m, vedette.Errorf(vedette.Invalid, "the manifest must be one object, as JSON or as a string of YAML")
	}
	if err := exactjson.Unmarshal(m.raw, &m, exactjson.Limits{}); err != nil {
		return m, vedette.Errorf(vedette.Invalid,
			"the manifest is invalid: kind, name and generateName must be strings, and metadata must be an object")
	}
	var items struct {
		Items json.RawMessage `json:"items"`
	}
	if strings.HasSuffix(m.Kind, "List") && exactjson.Unmarshal(m.raw, &items, exactjson.Limits{}) == nil && bytes.HasPrefix(items.Items, []byte("[")) {
		return m, vedette.Errorf(vedette.Invalid, "the manifest is a %s; send one operation for each item", m.Kind)
	}
	return m, nil
}

var yamlLine = regexp.MustCompile(`line \d+`)

func yamlDocumentToJSON(text string) ([]byte, error) {
	if n := yamlcount.Values([]byte(text)); n > yamlcount.MaxManifest {
		return nil, vedette.Errorf(vedette.Invalid, "the manifest has about %d values, more than the %d that YAML may have: send it as JSON", n, yamlcount.MaxManifest)
	}
	decoder := yaml3.NewDecoder(strings.NewReader(text))
	count := 0
	for {
		var node yaml3.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, yamlError(err)
		}
		if !isEmptyDocument(node) {
			count++
		}
		if !yamlcount.Expanded(&node).IsManifest() {
			return nil, vedette.Errorf(vedette.Invalid, "the manifest becomes more than %d values, or %d MiB of JSON, when its aliases are replaced: "+
				"send it as JSON", yamlcount.MaxManifest, yamlcount.MaxManifestBytes>>20)
		}
	}
	switch {
	case count == 0:
		return nil, vedette.Errorf(vedette.Invalid, "the manifest is empty")
	case count > 1:
		return nil, vedette.Errorf(vedette.Invalid, "the manifest contains %d documents; send one operation for each", count)
	}
	return convertDocument(text)
}

// isEmptyDocument reports whether a document contains only comments.
func isEmptyDocument(node yaml3.Node) bool {
	return len(node.Content) == 0 || node.Content[0].Tag == "!!null"
}

// convertDocument converts the one document that is not empty.
func convertDocument(text string) ([]byte, error) {
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		converted, err := yaml.YAMLToJSONStrict([]byte(document))
		if err != nil {
			return nil, yamlError(err)
		}
		if string(converted) != "null" {
			return converted, nil
		}
	}
	return nil, vedette.Errorf(vedette.Invalid, "the manifest is empty")
}

// yamlError returns where the YAML is invalid. The parser's error is not used, because it
// quotes the text.
func yamlError(err error) error {
	location := yamlLine.FindString(err.Error())
	if location == "" {
		location = "its indentation"
	}
	return vedette.Errorf(vedette.Invalid, "the manifest is neither JSON nor YAML: look at %s", location)
}
