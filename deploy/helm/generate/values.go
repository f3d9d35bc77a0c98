package main

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A value is one of values.yaml.
type value struct {
	path        string
	name        string
	comment     string // with backquotes and without its type
	annotation  string // what follows @ in the comment: "list string", "enum a b"
	defaultText string // as JSON; empty for groups
	node        *yaml.Node
	below       []value
}

// annotation matches the type at the end of a comment.
var annotation = regexp.MustCompile(`\s*@([a-z][a-zA-Z -]*)$`)

// parse reads values with their comments. A value without a comment is documented by its name alone, which must then say enough; a
// list or map that is empty needs a type.
func parse(text []byte) ([]value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	return parseMap(document.Content[0], "")
}

func parseMap(node *yaml.Node, prefix string) ([]value, error) {
	var values []value
	for i := 0; i < len(node.Content); i += 2 {
		key, n := node.Content[i], node.Content[i+1]
		v := value{path: prefix + key.Value, name: key.Value, node: n, comment: commentOf(key)}
		if m := annotation.FindStringSubmatch(v.comment); m != nil {
			v.annotation, v.comment = m[1], strings.TrimSuffix(v.comment, m[0])
		}
		switch {
		case n.Kind == yaml.MappingNode && v.annotation == "":
			below, err := parseMap(n, v.path+".")
			if err != nil {
				return nil, err
			}
			if len(below) == 0 {
				return nil, fmt.Errorf("line %d: %s is empty, and its comment does not say of what it is a map", key.Line, v.path)
			}
			v.below = below
		case n.Kind == yaml.SequenceNode && v.annotation == "":
			return nil, fmt.Errorf("line %d: the comment of %s does not say of what it is a list", key.Line, v.path)
		default:
			var content any
			if err := n.Decode(&content); err != nil {
				return nil, err
			}
			v.defaultText = encode(content)
		}
		values = append(values, v)
	}
	return values, nil
}

func commentOf(key *yaml.Node) string {
	lines := strings.Split(key.HeadComment, "\n")
	if at := lastBlank(lines); at >= 0 { // a paragraph of its own is about what follows as a whole
		lines = lines[at+1:]
	}
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(line, "#"))
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}

func lastBlank(lines []string) int {
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.TrimSpace(lines[i]) == "" {
			return i
		}
	}
	return -1
}
