package configfile

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vedette-io/vedette/internal/yamlcount"
)

// maxDocuments limits the number of YAML documents in a file.
const maxDocuments = 100

// document is one YAML document of a file. Clouddriver's own file has several, each for a profile.
type document struct {
	root      *node      // a mapping; at first with at least one key
	at        Position   // where the document starts
	condition *condition // nil until appliesTo is called
}

// parseDocuments parses a file into its documents, without empty ones. It reports invalid YAML and
// leaves out the rest of the file then.
func parseDocuments(b *treeBuilder, data []byte) (documents []*document) {
	if yamlcount.Values(data) > maxStructure {
		b.report.Add(Position{File: b.file}, "", "the configuration has more than %d values", maxNodes)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for range maxDocuments {
		var parsed yaml.Node
		err := decoder.Decode(&parsed)
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err != nil {
			at, message, isAnchor := anchorError(b.file, data, err)
			if !isAnchor {
				at, message = syntaxError(b.file, err)
			}
			b.report.Add(at, "", "this is not valid YAML: %s", message)
			return documents
		}
		if root := b.document(&parsed); root != nil {
			documents = append(documents, &document{root: root, at: b.position(&parsed)})
		}
	}
	b.report.Add(Position{File: b.file}, "", "the file has more than %d YAML documents: split it", maxDocuments)
	return documents
}

// maxStructure limits the characters of a file that separate values. The library needs some 250 bytes
// for each value, so that its trees must not be built first and then counted.
const maxStructure = 3 * maxNodes

// document returns the tree of a document, or nil if it has no keys.
func (b *treeBuilder) document(parsed *yaml.Node) *node {
	root := b.build(parsed, "")
	switch {
	case root.kind == mappingNode && len(root.fields) > 0:
		return root
	case root.kind != mappingNode && root.kind != nullNode:
		b.report.Add(root.at, "", "the file must contain keys with values, got %s", root)
	}
	return nil
}

// isBlank reports whether a file contains only white space, comments and document separators.
func isBlank(data []byte) bool {
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
		if len(line) > 0 && line[0] != '#' && string(line) != "---" && string(line) != "..." {
			return false
		}
	}
	return true
}

// appliesTo reports whether a document applies with the active profiles. restricted is false if it
// applies with all. It removes the key that says so, which has had its effect then.
func (d *document) appliesTo(active []string, r *Report) (applies, restricted bool) {
	if d.condition == nil {
		path := ""
		d.condition = &condition{}
		d.condition.applies, path = d.evaluate(active, r)
		d.condition.restricted = path != ""
		if path != "" {
			d.root.removePath(path)
		}
	}
	return d.condition.applies, d.condition.restricted
}

// condition is what the key of a document that names profiles says.
type condition struct{ applies, restricted bool }

// evaluate returns whether a document applies, and the path of the key that names profiles, or "".
// Spring has two keys for it; the older one, spring.profiles, is a group of other keys in other files.
func (d *document) evaluate(active []string, r *Report) (applies bool, path string) {
	for _, path := range []string{"spring.config.activate.on-profile", "spring.profiles"} {
		n := d.root.lookup(path)
		if n == nil || n.kind == mappingNode {
			continue
		}
		names := n.items
		if n.kind == scalarNode {
			names = []*node{n}
		}
		for _, name := range names {
			applies = matchesProfile(name, active, path, r) || applies
		}
		return applies, path
	}
	return true, ""
}

// matchesProfile evaluates names of profiles with commas; a name may be negated with "!".
func matchesProfile(n *node, active []string, path string, r *Report) bool {
	matches := false
	for name := range strings.SplitSeq(n.text, ",") {
		name, negated := strings.CutPrefix(strings.TrimSpace(name), "!")
		if !isProfileName(name) {
			r.Add(n.at, path, "%q must be names of profiles, got %s", path, quote(n.text))
			return false
		}
		if containsFold(active, name) != negated {
			matches = true
		}
	}
	return matches
}
