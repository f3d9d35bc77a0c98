package logging

import (
	"encoding/json"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDocumentBytes bounds what is parsed. No kubeconfig is larger.
const maxDocumentBytes = 1 << 20

// documentParts returns what is secret in a YAML or JSON document, such as a kubeconfig, however it is
// written: the values at names such as token, password and key, values of environment variables with such
// names, and passwords in URLs and arguments. It returns nil if the value is not such a document.
func documentParts(value string) []string {
	if len(value) > maxDocumentBytes || !strings.ContainsAny(value, ":[{") {
		return nil
	}
	root := parseDocument(value)
	if root.Kind == yaml.ScalarNode { // a text that contains a colon
		return nil
	}
	var d documentSecrets
	d.addNode(root)
	return d.parts
}

// parseDocument returns the content of a document; an empty node for a value that is none. JSON may contain
// characters that YAML does not allow.
func parseDocument(value string) *yaml.Node {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(value), &root); err == nil && root.Kind == yaml.DocumentNode {
		return root.Content[0]
	}
	var tree any
	var content yaml.Node
	if err := json.Unmarshal([]byte(value), &tree); err != nil || content.Encode(tree) != nil {
		return &yaml.Node{}
	}
	return &content
}

// documentSecrets collects the secrets of a document. It does not follow aliases to lists and mappings:
// those are looked at where they are.
type documentSecrets struct{ parts []string }

func (d *documentSecrets) addNode(n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		d.addMapping(n)
	case yaml.ScalarNode:
		d.addText(n.Value)
	case yaml.SequenceNode:
		for i, item := range n.Content {
			d.addNode(item)
			if i > 0 && isSecretFlag(n.Content[i-1]) { // --token VALUE
				d.addSecret(item)
			}
		}
	}
}

// addMapping adds the values at secret names, also in lists of names and values as in {name: TOKEN, value: x}.
func (d *documentSecrets) addMapping(n *yaml.Node) {
	named := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		named = named || n.Content[i].Value == "name" && secretName.MatchString(n.Content[i+1].Value)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, item := n.Content[i].Value, n.Content[i+1]
		if secretName.MatchString(name) || named && name == "value" {
			d.addSecret(item)
		}
		d.addNode(item)
	}
}

// addSecret adds a text, or each of a list of texts. What a mapping contains has names of its own.
func (d *documentSecrets) addSecret(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode && n.Alias.Kind == yaml.ScalarNode:
		d.addSecret(n.Alias)
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			if item.Kind != yaml.SequenceNode {
				d.addSecret(item)
			}
		}
	case n.Kind == yaml.ScalarNode:
		for line := range strings.Lines(n.Value) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") { // of PEM
				d.parts = append(d.parts, line)
			}
		}
	}
}

// addText adds what is secret in a text whose name is not: --token=VALUE, the password of a URL.
func (d *documentSecrets) addText(text string) {
	if name, value, found := strings.Cut(text, "="); found && secretName.MatchString(name) {
		d.parts = append(d.parts, value)
	}
	if u, err := url.Parse(text); err == nil && u.User != nil {
		if password, isSet := u.User.Password(); isSet {
			d.parts = append(d.parts, password)
		}
	}
}

// isSecretFlag reports whether the next argument of a program is secret.
func isSecretFlag(n *yaml.Node) bool {
	flag := n.Value // "" for what is not a text
	return strings.HasPrefix(flag, "-") && !strings.Contains(flag, "=") && secretName.MatchString(flag)
}
