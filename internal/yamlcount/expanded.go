package yamlcount

import (
	"math"

	"go.yaml.in/yaml/v3"
)

// MaxManifestBytes is how many bytes the JSON may have that the YAML of one manifest becomes. API servers accept 3 MiB.
const MaxManifestBytes = 16 << 20

// Size is what a document becomes as JSON.
type Size struct{ Values, Bytes int64 }

// IsManifest reports whether a manifest may become so much.
func (s Size) IsManifest() bool { return s.Values <= MaxManifest && s.Bytes <= MaxManifestBytes }

// Expanded returns what a parsed document becomes at most as JSON, in which each alias is a copy of what it stands
// for: a text of a megabyte with a thousand aliases of four bytes is a gigabyte.
func Expanded(document *yaml.Node) Size {
	e := expansion{known: map[*yaml.Node]Size{}}
	return e.of(document)
}

// tooLarge is the size of what contains itself.
var tooLarge = Size{math.MaxInt64 / 2, math.MaxInt64 / 2}

type expansion struct {
	known map[*yaml.Node]Size // of what aliases stand for
}

func (e *expansion) of(n *yaml.Node) Size {
	if n.Kind == yaml.AliasNode {
		return e.ofAlias(n.Alias)
	}
	size := Size{1, jsonBytes(n.Value)}
	for _, child := range n.Content {
		size = size.plus(e.of(child))
	}
	return size
}

// ofAlias measures what an alias stands for once.
func (e *expansion) ofAlias(of *yaml.Node) Size {
	if of == nil {
		return Size{}
	}
	size, isKnown := e.known[of]
	if !isKnown {
		e.known[of] = tooLarge // while it is measured
		size = e.of(of)
		e.known[of] = size
	}
	return size
}

func (s Size) plus(other Size) Size {
	return Size{min(s.Values+other.Values, tooLarge.Values), min(s.Bytes+other.Bytes, tooLarge.Bytes)}
}

// jsonBytes returns what a text has as JSON, with quotes and a separator. encoding/json also escapes what HTML would.
func jsonBytes(text string) int64 {
	size := int64(len(text) + len(`"":`))
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ' || c == '<' || c == '>' || c == '&':
			size += int64(len(`\u0000`) - 1)
		case c == '"' || c == '\\':
			size++
		}
	}
	return size
}
