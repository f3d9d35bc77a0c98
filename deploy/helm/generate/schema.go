package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	agentconfig "github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/internal/configfile/reference"
	"github.com/vedette-io/vedette/internal/formerchart"
	serverconfig "github.com/vedette-io/vedette/server/config"
)

type schema = reference.JSONSchema

// rootSchema returns the schema of all values. Those of the predecessor's chart are not unknown: templates/formerly.yaml says what to set
// instead.
func rootSchema(values []value, former []formerchart.Value) schema {
	root := groupSchema(values)
	root["$schema"] = "https://json-schema.org/draft-07/schema#"
	properties := root["properties"].(schema)
	for _, v := range former {
		steps := strings.Split(v.Path, ".")
		group := properties
		for _, step := range steps[:len(steps)-1] {
			group = group[step].(schema)["properties"].(schema)
		}
		group[steps[len(steps)-1]] = schema{}
	}
	properties["global"] = schema{"type": "object"} // of a chart that has this one as a part
	return root
}

// groupSchema returns the schema of a group. What templates cannot do without is required, although values.yaml has a default of
// everything: null removes it, and "helm upgrade --reuse-values" takes the defaults of the chart before.
func groupSchema(values []value) schema {
	properties, required := schema{}, []string{}
	for _, v := range values {
		properties[v.name] = valueSchema(v)
		if isRequired(v) {
			required = append(required, v.name)
		}
	}
	return schema{"type": "object", "additionalProperties": false, "properties": properties, "required": required}
}

// isRequired reports whether a value must be there. Lists, maps and texts may be missing if they are empty by default.
func isRequired(v value) bool {
	if v.below != nil {
		return true
	}
	return v.node.Kind == yaml.ScalarNode && v.defaultText != `""`
}

func valueSchema(v value) schema {
	var s schema
	if v.below != nil {
		s = groupSchema(v.below)
		if hasQuantities(v) { // of resources of any name: cpu, memory, ephemeral-storage, …
			s = schema{"type": "object", "additionalProperties": quantity}
		}
	} else {
		s = leafSchema(v)
	}
	if v.comment != "" {
		s["description"] = v.comment
	}
	return s
}

var (
	text     = schema{"type": "string"}
	name     = schema{"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
	host     = schema{"type": "string", "pattern": `^[^\s,]+$`}
	quantity = schema{"type": []string{"string", "number"}}
)

// leafSchema returns the schema that a value's annotation says, or else that of its default.
func leafSchema(v value) schema {
	kind, rest, _ := strings.Cut(v.annotation, " ")
	switch kind {
	case "prefix":
		return schema{"type": "string", "pattern": "^[a-z0-9][-a-z0-9.]*$"}
	case "port":
		return schema{"type": "integer", "minimum": 1, "maximum": 65535}
	case "days":
		return schema{"type": "integer", "minimum": 1, "maximum": 36500}
	case "enum":
		return schema{"enum": strings.Fields(rest)}
	case "list":
		return schema{"type": "array", "items": itemSchema(rest)}
	case "map":
		return schema{"type": "object", "additionalProperties": text}
	case "map-of":
		return schema{"type": "object", "additionalProperties": itemSchema(rest)}
	case "object":
		return schema{"type": "object"}
	case "config":
		return configSchema(rest)
	}
	switch v.node.Tag {
	case "!!bool":
		return schema{"type": "boolean"}
	case "!!int":
		return schema{"type": "integer", "minimum": 0}
	default:
		return schema{"type": "string"}
	}
}

// hasQuantities reports whether the values below are Kubernetes' quantities, which may be written as numbers.
func hasQuantities(v value) bool {
	return strings.HasSuffix(v.path, ".resources.requests") || strings.HasSuffix(v.path, ".resources.limits")
}

func itemSchema(kind string) schema {
	switch kind {
	case "string", "kind":
		return text
	case "namespace":
		return name
	case "host":
		return host
	case "name":
		return schema{"type": "string", "minLength": 1}
	case "kubeconfig":
		return schema{"type": "object", "additionalProperties": false, "required": []string{"secret"}, "properties": schema{
			"secret": schema{"type": "string", "minLength": 1}, "key": text, "settings": configSchema("account")}}
	case "resource":
		return schema{"type": "object", "additionalProperties": false, "required": []string{"resource"}, "properties": schema{
			"group": text, "resource": schema{"type": "string", "minLength": 1}}}
	default:
		return schema{}
	}
}

func configSchema(of string) schema {
	switch of {
	case "server":
		return reference.Schema(serverconfig.Config{})
	case "agent":
		return reference.Schema(agentconfig.Config{})
	case "account":
		return reference.Schema(agentconfig.Account{})
	default:
		panic("unknown configuration " + of)
	}
}

func encode(content any) string {
	encoded, err := json.Marshal(content)
	if err != nil {
		panic(fmt.Sprintf("a value of YAML that JSON does not have: %v", err))
	}
	return string(encoded)
}
