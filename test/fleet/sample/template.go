package sample

import (
	"bytes"
	"embed"
	"fmt"
	"regexp"
	"sync"

	"github.com/vedette-io/vedette"
)

//go:embed templates
var files embed.FS

// objectTemplate is an object of one kind with gaps.
type objectTemplate struct {
	whole    []part
	metadata []part // the value of its metadata
}

// part is text and the filler of the gap after it; nil at the end.
type part struct {
	text []byte
	fill func(o *object, dst []byte) []byte
}

// A template is JSON in which "$name$" stands for text, "#name#" for a number, "@name@" for any
// value, and "@include:file@" for the content of another file.
var (
	includes     = regexp.MustCompile(`"@include:(\w+)@"(:0)?`)
	placeholders = regexp.MustCompile(`"[@#](\w+)[@#]"|\$(\w+)\$`)
)

var allTemplates = sync.OnceValue(func() map[vedette.Kind]objectTemplate {
	all := map[vedette.Kind]objectTemplate{}
	for _, r := range resources {
		raw := compact(include(lower(r.Kind.Name)))
		all[r.Kind] = objectTemplate{whole: parse(raw), metadata: parse(metadataOf(raw))}
	}
	return all
})

// include reads a file and the files that it includes.
func include(name string) []byte {
	raw, err := files.ReadFile("templates/" + name + ".json")
	if err != nil {
		panic(err) // cannot happen: the templates are part of this program
	}
	return includes.ReplaceAllFunc(bytes.TrimSpace(raw), func(found []byte) []byte {
		return include(string(includes.FindSubmatch(found)[1]))
	})
}

// metadataOf returns the metadata of a template, which is between the first member of that name and
// the spec or data.
func metadataOf(raw []byte) []byte {
	_, rest, _ := bytes.Cut(raw, []byte(`"metadata":`))
	depth, quoted := 0, false
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c == '{':
			depth++
		case !quoted && c == '}':
			depth--
			if depth == 0 {
				return rest[:i+1]
			}
		}
	}
	panic("a template has no metadata")
}

func parse(raw []byte) []part {
	var parts []part
	at := 0
	for _, m := range placeholders.FindAllSubmatchIndex(raw, -1) {
		start, end := m[2], m[3]
		if start < 0 {
			start, end = m[4], m[5]
		}
		fill := fillers[string(raw[start:end])]
		if fill == nil {
			panic(fmt.Sprintf("unknown gap %q in a template", raw[start:end]))
		}
		parts = append(parts, part{raw[at:m[0]], fill})
		at = m[1]
	}
	return append(parts, part{text: raw[at:]})
}

func (o *object) fill(dst []byte, parts []part) []byte {
	for _, p := range parts {
		dst = append(dst, p.text...)
		if p.fill != nil {
			dst = p.fill(o, dst)
		}
	}
	return dst
}
