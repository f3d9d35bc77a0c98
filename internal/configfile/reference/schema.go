package reference

import (
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
)

// A JSONSchema is a document of JSON Schema.
type JSONSchema map[string]any

// Schema returns the JSON Schema of a configuration in which keys are nested and written as the reference writes them, so that a tool that
// knows schemas reports a wrong key or a wrong type by its name. The programs accept more: dotted keys and other notations. Values may
// always contain placeholders, ${NAME}. Keys without effect are accepted.
func Schema(config any) JSONSchema {
	root := newGroup()
	for _, key := range configfile.Keys(config) {
		steps := strings.Split(key.Path, ".")
		group := root
		for _, step := range steps[:len(steps)-1] {
			group = group.below(step)
		}
		value := newGroup()
		if key.Type != "" {
			value = valueSchema(key)
		}
		for _, name := range append([]string{steps[len(steps)-1]}, key.Aliases...) {
			if known, ok := group.properties()[name].(JSONSchema); ok && key.Type == "any" {
				delete(known, "additionalProperties") // the keys without effect beside those that have one
				continue
			}
			group.properties()[name] = value
		}
	}
	return root
}

func newGroup() JSONSchema {
	return JSONSchema{"type": "object", "additionalProperties": false, "properties": JSONSchema{}}
}

func (s JSONSchema) properties() JSONSchema { return s["properties"].(JSONSchema) }

// below returns the group of a key, or of the entries of its list. That it is a list shows by the first key in an entry.
func (s JSONSchema) below(key string) JSONSchema {
	name, isList := strings.CutSuffix(key, "[]")
	found, ok := s.properties()[name].(JSONSchema)
	switch {
	case !ok: // a struct without a key of its own
		found = newGroup()
		s.properties()[name] = found
	case len(found) == 0: // anything, of which some keys have an effect
		found["type"], found["properties"] = "object", JSONSchema{}
	}
	if !isList {
		return found
	}
	if found["type"] != "array" {
		clear(found)
		found["type"], found["items"] = "array", newGroup()
	}
	return found["items"].(JSONSchema)
}

// scalars are what a text may be in YAML: 1.2 and true are texts where a text is wanted.
var scalars = []string{"string", "number", "boolean"}

// valueSchema returns the schema of a key's values.
func valueSchema(key configfile.Key) JSONSchema {
	orText := func(kind, pattern string) JSONSchema {
		return JSONSchema{"anyOf": []JSONSchema{{"type": kind}, {"type": "string", "pattern": pattern + `|\$\{`}}}
	}
	switch key.Type {
	case "boolean":
		return orText("boolean", `^(?i:true|false|yes|no|on|off)$`)
	case "integer":
		return orText("integer", `^-?[0-9_]+$`)
	case "number":
		return orText("number", `^-?[0-9._eE+-]+$`)
	case "string", "secret string", "URL", "size", "duration":
		return JSONSchema{"type": scalars}
	case "list of strings", "list of secret strings":
		return JSONSchema{"anyOf": []JSONSchema{{"type": "array", "items": JSONSchema{"type": scalars}}, {"type": "string"}}}
	case "map of strings", "map of secret strings":
		return JSONSchema{"type": "object", "additionalProperties": JSONSchema{"type": scalars}}
	default:
		return JSONSchema{}
	}
}
