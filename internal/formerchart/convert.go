package formerchart

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/nearest"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/internal/yamlcount"
)

// MaxBytes is how large a file of values may be: a release with larger ones does not fit into the Secret in which Helm keeps it.
const MaxBytes = 1 << 20

// A Result is what becomes of a file of values.
type Result struct {
	Values  []byte // of Vedette's chart, in YAML
	Notes   []Note // ordered by line
	Secrets []Secret
}

// A Note is what the user should know or do about a value.
type Note struct {
	Line int // 0 for the file as a whole
	Path string
	Text string
}

// A Secret is content that must not be among values.
type Secret struct {
	Name string // of the object
	Key  string
	// Path is the value that had the content.
	Path    string
	Content []byte
}

// Convert converts a file of values. Its errors name all values that are unknown or wrong, with their lines, and none of the contents.
func Convert(file []byte) (*Result, error) {
	root, err := parse(file)
	if err != nil {
		return nil, err
	}
	c := newConverter()
	c.group(entry{node: root}, "")
	c.finish()
	if len(c.problems) > 0 {
		slices.SortStableFunc(c.problems, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
		var all []error
		for _, p := range c.problems {
			if p.line == 0 {
				all = append(all, errors.New(p.text))
				continue
			}
			all = append(all, fmt.Errorf("line %d: %s", p.line, p.text))
		}
		return nil, vedette.Errorf(vedette.Invalid, "%w", errors.Join(all...))
	}
	values, err := c.encode()
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(c.notes, func(a, b Note) int { return cmp.Compare(a.Line, b.Line) })
	return &Result{Values: values, Notes: c.notes, Secrets: c.secrets}, nil
}

// parse returns the map of a file of one document, in which no aliases are left.
func parse(file []byte) (*yaml.Node, error) {
	switch {
	case len(file) > MaxBytes:
		return nil, vedette.Errorf(vedette.Invalid, "it has more than %d bytes, which no release of Helm can have", MaxBytes)
	case yamlcount.Values(file) > yamlcount.MaxManifest:
		return nil, vedette.Errorf(vedette.Invalid, "it has more than %d values", yamlcount.MaxManifest)
	}
	if err := textcheck.UTF8(file); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "it is not text in UTF-8: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(file))
	var document, next yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	} else if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "it is not YAML: %s", withoutQuotes(err))
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, vedette.Errorf(vedette.Invalid, "it is not YAML: %s", withoutQuotes(err))
		}
		return nil, vedette.Errorf(vedette.Invalid, "line %d: a second document begins; values have one", next.Line)
	}
	if !yamlcount.Expanded(&document).IsManifest() {
		return nil, vedette.Errorf(vedette.Invalid, "it becomes too large when its aliases are replaced by what they stand for")
	}
	root := withoutAliases(document.Content[0])
	if isEmpty(root) {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, vedette.Errorf(vedette.Invalid, "line %d: it is %s, and values are a map", root.Line, describe(root))
	}
	return root, nil
}

// withoutQuotes returns an error of the parser without what it quotes of the file, which may be secret.
func withoutQuotes(err error) string {
	text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), "`")
	return strings.TrimSpace(text)
}

// withoutAliases returns a copy in which aliases and merged maps (<<) are what they stand for. The caller has checked that this ends, and
// how large it becomes.
func withoutAliases(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	copied := *n
	copied.Anchor, copied.Content = "", nil
	var merged []*yaml.Node
	for i := 0; i < len(n.Content); i++ {
		if n.Kind == yaml.MappingNode && i%2 == 0 && n.Content[i].Tag == "!!merge" {
			merged = append(merged, withoutAliases(n.Content[i+1]))
			i++
			continue
		}
		copied.Content = append(copied.Content, withoutAliases(n.Content[i]))
	}
	for _, m := range merged {
		sources := []*yaml.Node{m}
		if m.Kind == yaml.SequenceNode {
			sources = m.Content
		}
		for _, source := range sources {
			for i := 0; i+1 < len(source.Content); i += 2 {
				if find(&copied, source.Content[i].Value) == nil {
					copied.Content = append(copied.Content, source.Content[i], source.Content[i+1])
				}
			}
		}
	}
	return &copied
}

type problem struct {
	line int
	text string
}

type converter struct {
	problems []problem
	notes    []Note
	secrets  []Secret

	image      *yaml.Node // the chart's values image and agent
	agent      *yaml.Node
	file       *yaml.Node // agentyml, and config, which counts more
	configured *yaml.Node
	clusters   []entry        // kubeconfigs
	lines      map[string]int // of keys of the configuration, by path
}

func newConverter() *converter {
	return &converter{image: newMap(), agent: newMap(), lines: map[string]int{}}
}

func (c *converter) problem(n *yaml.Node, format string, args ...any) {
	c.problems = append(c.problems, problem{n.Line, fmt.Sprintf(format, args...)})
}

func (c *converter) note(line int, path, format string, args ...any) {
	c.notes = append(c.notes, Note{line, path, fmt.Sprintf(format, args...)})
}

// group converts a map of the chart's values: the root, or one below it, such as image.
func (c *converter) group(e entry, prefix string) {
	for _, below := range c.entries(e) {
		below.path = prefix + below.key.Value
		table := Values()
		i := slices.IndexFunc(table, func(v Value) bool { return v.Path == below.path })
		isGroup := slices.ContainsFunc(table, func(v Value) bool { return strings.HasPrefix(v.Path, below.path+".") })
		switch {
		case i >= 0 && isEmpty(below.node):
		case i >= 0:
			table[i].convert(c, below)
		case isGroup && isEmpty(below.node):
		case isGroup:
			c.group(below, below.path+".")
		case below.path == "global": // Helm's own
			c.note(below.key.Line, below.path, "has no effect in the chart of agents, and is left out")
		default:
			var known []string
			for _, v := range table {
				known = append(known, v.Path)
			}
			c.problem(below.key, "%s is not a value of the chart agent-k8s-full%s", quote(below.path), nearest.Hint(below.path, known))
		}
	}
}

// entries returns the entries of a map. Keys that occur twice, and such that are not texts, are problems.
func (c *converter) entries(e entry) (entries []entry) {
	if !c.is(e, yaml.MappingNode, "a map") {
		return nil
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(e.node.Content); i += 2 {
		key, n := e.node.Content[i], e.node.Content[i+1]
		below := entry{strings.TrimPrefix(e.path+"."+key.Value, "."), key, n}
		switch {
		case key.Kind != yaml.ScalarNode || isNull(key):
			c.problem(key, "a key of %s is %s, want a name", cmp.Or(quote(e.path), "the file"), describe(key))
		case seen[key.Value]:
			c.problem(key, "%s is there twice", quote(below.path))
		default:
			seen[key.Value] = true
			entries = append(entries, below)
		}
	}
	return entries
}

// is reports whether a value has a kind, and adds a problem otherwise.
func (c *converter) is(e entry, kind yaml.Kind, want string) bool {
	if e.node.Kind == kind && !(kind == yaml.ScalarNode && isNull(e.node)) {
		return true
	}
	c.problem(cmp.Or(e.key, e.node), "%s is %s, want %s", cmp.Or(quote(e.path), "the file"), describe(e.node), want)
	return false
}

// encode returns the values of the chart.
func (c *converter) encode() ([]byte, error) {
	root, server := newMap(), newMap()
	set(server, "enabled", scalar("!!bool", "false"))
	set(root, "server", server)
	if len(c.image.Content) > 0 {
		set(root, "image", c.image)
	}
	if len(c.agent.Content) > 0 {
		set(root, "agent", c.agent)
	}
	var out bytes.Buffer
	out.WriteString("# Values of the chart vedette, converted from those of agent-k8s-full by vedette migrate values.\n")
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(plain(root)), encoder.Close()); err != nil {
		return nil, fmt.Errorf("encode the values: %w", err)
	}
	return out.Bytes(), nil
}

// plain removes the comments of the old file, which are about other values and may have secrets.
func plain(n *yaml.Node) *yaml.Node {
	n.HeadComment = ""
	n.LineComment = ""
	n.FootComment = ""
	for _, below := range n.Content {
		plain(below)
	}
	return n
}

func newMap() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

func scalar(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

func text(value string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(value)
	return n
}

// find returns the value of a key, or nil.
func find(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// set sets the value at a path of keys.
func set(m *yaml.Node, path string, value *yaml.Node) {
	key, rest, below := strings.Cut(path, ".")
	known := find(m, key)
	switch {
	case below && known == nil:
		known = newMap()
		m.Content = append(m.Content, text(key), known)
		fallthrough
	case below:
		set(known, rest, value)
	case known == nil:
		m.Content = append(m.Content, text(key), value)
	default:
		*known = *value
	}
}

// remove removes the value at a path of keys and returns it, or nil.
func remove(m *yaml.Node, path string) *yaml.Node {
	key, rest, below := strings.Cut(path, ".")
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value != key {
			continue
		}
		value := m.Content[i+1]
		if !below {
			m.Content = slices.Delete(m.Content, i, i+2)
			return value
		}
		removed := remove(value, rest)
		if removed != nil && len(value.Content) == 0 {
			m.Content = slices.Delete(m.Content, i, i+2)
		}
		return removed
	}
	return nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// isEmpty reports whether a value says nothing, as the defaults of a chart do.
func isEmpty(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode {
		return isNull(n) || n.ShortTag() == "!!str" && n.Value == ""
	}
	return len(n.Content) == 0
}

func describe(n *yaml.Node) string {
	switch {
	case isNull(n):
		return "empty"
	case n.Kind == yaml.MappingNode:
		return "a map"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!bool":
		return "true or false"
	case n.ShortTag() == "!!int" || n.ShortTag() == "!!float":
		return "a number"
	default:
		return "a text"
	}
}

// notName matches what names of values do not contain. What follows it may be a value: in {token:hunter2}, all of it is a key.
var notName = regexp.MustCompile(`[^A-Za-z0-9_.\[\]/-]`)

// quote returns a path as it may be printed.
func quote(path string) string {
	if at := notName.FindStringIndex(path); at != nil {
		path = path[:at[0]] + "…"
	}
	return textcheck.Truncate(path, 200)
}
