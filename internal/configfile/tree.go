package configfile

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxNodes limits the size of all trees together, because aliases can make a tree much larger than
// its file.
const maxNodes = 200_000

type nodeKind int

const (
	nullNode nodeKind = iota // null or an empty document
	scalarNode
	listNode
	mappingNode
)

// node is a YAML value with its position. Aliases and merge keys have been replaced by their
// values.
type node struct {
	kind    nodeKind
	at      Position
	text    string // of a scalar, as in the file
	literal bool   // whether text contains no placeholders
	items   []*node
	fields  []field
}

// field is one key of a mapping and its value.
type field struct {
	key   string // as in the file, including dots
	at    Position
	value *node
	layer int // the place of its document in the order of precedence, from 0; later ones override
}

// String returns the kind of a node for messages, never its value.
func (n *node) String() string {
	return [...]string{"nothing", "a single value", "a list", "a group of keys"}[n.kind]
}

var yamlError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

// syntaxError extracts the line from the YAML library's message.
func syntaxError(name string, err error) (Position, string) {
	at := Position{File: name}
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		return at, err.Error()
	}
	at.Line, _ = strconv.Atoi(m[1])
	if at.Line == 0 && !strings.Contains(m[2], "character") {
		at.Line = 1 // the library omits the line if it is the first one
	}
	return at, m[2]
}

// unknownAnchor matches the one message of the library that quotes the file. A password that begins
// with * is taken for the name of an anchor.
var unknownAnchor = regexp.MustCompile(`(?s)^yaml: unknown anchor '(.*)' referenced$`)

// anchorError returns the line of the first reference to an anchor that does not exist, and a message
// that does not quote it. It returns false if the library's error is another one.
func anchorError(name string, data []byte, err error) (Position, string, bool) {
	m := unknownAnchor.FindStringSubmatch(err.Error())
	if m == nil {
		return Position{}, "", false
	}
	at := Position{File: name}
	if i := bytes.Index(data, []byte("*"+m[1])); i >= 0 {
		at.Line = 1 + bytes.Count(data[:i], []byte("\n"))
	}
	return at, "a value begins with *, which refers to an anchor that does not exist: put the value into quotes", true
}

// treeBuilder converts the YAML library's nodes to ours.
type treeBuilder struct {
	file        string
	report      *Report
	nodes       *int         // of all files together
	openAliases []*yaml.Node // aliases that are being expanded
	depth       int          // of the node that is being built
	tooDeep     bool         // reported
}

const (
	// maxDepth limits how deep lists and groups are nested. Aliases can nest them deeper than a file is
	// long.
	maxDepth = 100
	// maxKeyBytes limits a key, because it is part of the paths of all values below it.
	maxKeyBytes = 1 << 10
	// maxPathBytes limits a path in messages.
	maxPathBytes = 4 << 10
)

func (b *treeBuilder) position(n *yaml.Node) Position { return Position{b.file, n.Line, n.Column} }

func (b *treeBuilder) build(n *yaml.Node, path string) *node {
	out := &node{at: b.position(n)}
	*b.nodes++
	if *b.nodes > maxNodes {
		if *b.nodes == maxNodes+1 {
			b.report.Add(out.at, "", "the configuration has more than %d values, counting each use of an alias", maxNodes)
		}
		return out
	}
	b.depth++
	defer func() { b.depth-- }()
	if b.depth > maxDepth {
		if !b.tooDeep {
			b.report.Add(out.at, "", "values are nested more than %d levels deep, counting those of aliases", maxDepth)
		}
		b.tooDeep = true
		return out
	}
	path = path[:min(len(path), maxPathBytes)]
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) > 0 {
			return b.build(n.Content[0], path)
		}
	case yaml.AliasNode:
		return b.alias(n, path)
	case yaml.ScalarNode:
		b.scalar(n, out, path)
	case yaml.SequenceNode:
		out.kind = listNode
		for i, item := range n.Content {
			out.items = append(out.items, b.build(item, indexPath(path, i)))
		}
	case yaml.MappingNode:
		out.kind = mappingNode
		b.mapping(n, out, path)
	}
	return out
}

func (b *treeBuilder) scalar(n *yaml.Node, out *node, path string) {
	if tag := n.ShortTag(); !strings.HasPrefix(tag, "!!") || tag == "!!binary" {
		b.report.Add(out.at, path, "%q has a YAML tag, which is not supported: remove it, or put a value that begins with ! into quotes", path)
		return
	}
	if n.ShortTag() == "!!null" {
		return
	}
	out.kind, out.text = scalarNode, n.Value
}

func (b *treeBuilder) alias(n *yaml.Node, path string) *node {
	if slices.Contains(b.openAliases, n.Alias) {
		b.report.Add(b.position(n), path, "the alias refers to itself")
		return &node{at: b.position(n)}
	}
	b.openAliases = append(b.openAliases, n.Alias)
	defer func() { b.openAliases = b.openAliases[:len(b.openAliases)-1] }()
	return b.build(n.Alias, path)
}

// mapping converts the keys of a mapping. A key is its text, whatever YAML's interpretation: y, on,
// 7 and null are ordinary keys.
func (b *treeBuilder) mapping(n *yaml.Node, out *node, path string) {
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			b.report.Add(b.position(n.Content[i]), path, "a key must be a single value, not a list or a group")
		case len(key.Value) > maxKeyBytes:
			b.report.Add(b.position(n.Content[i]), path, "a key must have at most %d bytes, got %d", maxKeyBytes, len(key.Value))
		case key.ShortTag() == "!!merge":
			merged = append(merged, value)
		default:
			out.fields = append(out.fields, field{key: key.Value, at: b.position(n.Content[i]), value: b.build(value, joinPath(path, key.Value))})
		}
	}
	for _, value := range merged {
		b.merge(value, out, path)
	}
}

// merge adds the fields of a "<<" whose keys the mapping does not have itself.
func (b *treeBuilder) merge(value *yaml.Node, out *node, path string) {
	source := b.build(value, path)
	parts := []*node{source}
	if source.kind == listNode {
		parts = source.items
	}
	for _, part := range parts {
		if part.kind != mappingNode {
			b.report.Add(part.at, path, "<< must refer to a group of keys")
			continue
		}
		for _, f := range part.fields {
			if !out.has(f.key) {
				out.fields = append(out.fields, f)
			}
		}
	}
}

// setLayer sets the layer of all fields of a tree.
func (n *node) setLayer(layer int) {
	for _, item := range n.items {
		item.setLayer(layer)
	}
	for i := range n.fields {
		n.fields[i].layer = layer
		n.fields[i].value.setLayer(layer)
	}
}

func (n *node) has(key string) bool {
	for _, f := range n.fields {
		if f.key == key {
			return true
		}
	}
	return false
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func indexPath(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
