package configfile

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// OtherProgram describes the configuration of another program, which users may confuse with this one.
type OtherProgram struct {
	Name string // for example "vedette-agent"
	// Keys are the keys at the top of its files that have no effect in this program.
	Keys []string
	// Shared are the keys at the top that both programs have. They do not tell which one a file is for.
	Shared []string
}

// Limits of the search for a configuration within another file.
const (
	maxPlaces      = 3  // that a message names
	maxEmbedded    = 64 // texts that are parsed
	maxShownKeys   = 8
	maxHintedKeys  = 50
	maxShownLength = 200
)

// unrelatedFile is a file that is not a configuration of this program.
type unrelatedFile struct {
	root *node
	what string // "a kubeconfig"; empty if nothing is known about it
	todo string // what to do with it; may be empty
	// places are where a configuration is in it. They are looked for only if isSearched is set.
	places     []string
	theirs     []string // where a configuration of the other program is, if none of this one is
	isSearched bool
}

// rejectUnrelated reports a file that is not a configuration of this program, which would otherwise start
// with its defaults as if there were no file. A file of another product that an overlay or an import
// brings may consist of unknown keys, unless it is known what it is.
func (l *loader) rejectUnrelated(f *file, isFirst bool) bool {
	if len(f.documents) == 0 || l.options.Program == "" {
		return false
	}
	for _, d := range f.documents {
		if slices.ContainsFunc(d.root.fields, func(f field) bool { return l.knowsKey(f.key) || containsKey(l.options.Other.Keys, f.key) }) {
			return false
		}
	}
	u := unrelatedFile{root: f.documents[0].root}
	u.identify()
	if u.isSearched {
		u.places, u.theirs = l.placesIn(u.root)
	}
	if u.what == "" && (!isFirst || len(u.places) == 0 && l.resemblesOurs(f.documents)) {
		return false
	}
	l.report.addAboutKey(f.documents[0].at, "", "%s", u.message(l))
	return true
}

// knowsKey reports whether a key at the top of a file is ours, or is known to be of another product whose
// files may be used.
func (l *loader) knowsKey(key string) bool {
	if i, _ := matchKey(keySpecs(l.target), key); i >= 0 {
		return true
	}
	begins := func(path string) bool {
		first, _, _ := strings.Cut(path, ".")
		_, isBelow := cutRelaxed(key, first)
		return isBelow
	}
	return l.isRenamed(key) || slices.ContainsFunc(l.options.OtherProductKeys, begins)
}

// resemblesOurs reports whether a key is a misspelt one of ours, which is another error.
func (l *loader) resemblesOurs(documents []*document) bool {
	d := &decoder{report: l.report, options: l.options}
	checked := 0
	for _, document := range documents {
		for _, f := range document.root.fields {
			if checked++; checked > maxHintedKeys {
				return false
			}
			if d.hintFor(location{}, f.key, l.target) != "" {
				return true
			}
		}
	}
	return false
}

func (u *unrelatedFile) identify() {
	text := func(path string) string {
		if n := u.root.lookup(path); n != nil && n.kind == scalarNode {
			return n.text
		}
		return ""
	}
	kind := text("kind")
	u.isSearched = true
	switch {
	case u.root.has("clusters") && u.root.has("contexts"):
		u.what, u.todo = "a kubeconfig", "name it as kubeconfigFile of an entry of kubernetes.accounts in the configuration of vedette-agent"
		u.isSearched = false
	case u.root.has("deploymentConfigurations"):
		u.what, u.todo = "a configuration of Halyard", ""
	case kind != "" && text("apiVersion") != "":
		u.what = "a Kubernetes object, " + shown(kind)
		if name := text("metadata.name"); name != "" {
			u.what += " " + shown(strings.TrimPrefix(text("metadata.namespace")+"/"+name, "/"))
		}
		u.todo = "apply it with kubectl, and name the file with the configuration itself"
	}
}

// shown returns a short text of a file for a message of one line.
func shown(text string) string {
	if len(text) > maxShownLength {
		text = strings.ToValidUTF8(text[:maxShownLength], "") + "…"
	}
	return printable(text)
}

func (u *unrelatedFile) message(l *loader) string {
	var keys []string
	for _, f := range u.root.fields {
		keys = append(keys, shown(withoutValue(f.key)))
	}
	if more := len(keys) - maxShownKeys; more > 0 {
		keys = append(keys[:maxShownKeys], fmt.Sprintf("and %d more", more))
	}
	message := fmt.Sprintf("this is not a configuration of %s: none of its keys (%s) is known", l.options.Program, strings.Join(keys, ", "))
	if u.what != "" {
		message += ". It seems to be " + u.what
	}
	if len(u.places) > 0 {
		return message + ". The configuration is in it at " + strings.Join(u.places, " and at ") +
			": save that part as a file of its own; a volume of a ConfigMap or Secret has a file for each key of its data"
	}
	if len(u.theirs) > 0 {
		return fmt.Sprintf("%s. What is in it at %s seems to be the configuration of %s, not of %s: name another file with --config",
			message, strings.Join(u.theirs, " and at "), l.options.Other.Name, l.options.Program)
	}
	if u.todo != "" {
		return message + ": " + u.todo
	}
	return message + ": see " + l.options.Reference + " for the keys"
}

// place is a part of a file that looks like a configuration of this program.
type place struct {
	path     string
	at       Position
	own      int // groups of this program
	specific int // of them, those that the other program does not have
}

// placeFinder searches a file for a configuration.
type placeFinder struct {
	loader   *loader
	found    []place
	theirs   []place // of the other program
	embedded int     // texts that were parsed
}

// placesIn returns the places in a file where a configuration of this program is, the best first. If there is none that
// can only be of this program, it returns those of the other one, if there are any.
func (l *loader) placesIn(root *node) (own, theirs []string) {
	p := placeFinder{loader: l}
	p.search(root, "")
	slices.SortStableFunc(p.found, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.specific, a.specific), cmp.Compare(b.own, a.own))
	})
	if len(p.theirs) > 0 && (len(p.found) == 0 || p.found[0].specific == 0) {
		for _, found := range p.theirs[:min(len(p.theirs), maxPlaces)] {
			theirs = append(theirs, found.String())
		}
		return nil, theirs
	}
	for _, found := range p.found[:min(len(p.found), maxPlaces)] {
		if found.specific == 0 && len(own) > 0 {
			break // keys that both programs have say nothing if there is a better place
		}
		own = append(own, found.String())
	}
	return own, nil
}

func (p place) String() string { return fmt.Sprintf("%s (line %d)", p.path, p.at.Line) }

// search looks at a node and at all below it.
func (p *placeFinder) search(n *node, path string) {
	switch n.kind {
	case mappingNode:
		if path != "" && p.add(n, path, n.at) {
			return
		}
		for _, f := range n.fields {
			p.search(f.value, keyInPath(path, f.key))
		}
	case listNode:
		for i, item := range n.items {
			p.search(item, indexPath(path, i))
		}
	case scalarNode:
		p.searchText(n, path)
	}
}

// searchText looks at a text, such as a value of a ConfigMap, and at the decoded text of a Secret.
func (p *placeFinder) searchText(n *node, path string) {
	text := n.text
	if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil && len(decoded) > 0 && utf8.Valid(decoded) {
		text, path = string(decoded), path+" in base64"
	}
	if !strings.Contains(text, ":") || p.embedded >= maxEmbedded {
		return
	}
	p.embedded++
	discarded := &Report{}
	for _, d := range parseDocuments(&treeBuilder{file: n.at.File, report: discarded, nodes: &p.loader.nodes}, []byte(text)) {
		if p.add(d.root, path, n.at) {
			return
		}
		if len(p.loader.keysOfOther([]*node{d.root})) > 0 {
			p.theirs = append(p.theirs, place{path: shown(path), at: n.at})
			return
		}
	}
}

// add adds a mapping if it has keys of this program, with values of the right form.
func (p *placeFinder) add(n *node, path string, at Position) bool {
	found := place{path: shown(path), at: at}
	for _, f := range n.fields {
		if p.isOwn(f) {
			found.own++
			if !containsKey(p.loader.options.Other.Shared, f.key) {
				found.specific++
			}
		}
	}
	for _, rename := range p.loader.options.Renames {
		if !strings.Contains(rename.From, ".") {
			continue // a name such as cluster is common
		}
		if group := n.lookup(rename.From); group != nil && group.kind == mappingNode {
			found.own++
			found.specific++
		}
	}
	isTheirs := slices.ContainsFunc(n.fields, func(f field) bool { return containsKey(p.loader.options.Other.Keys, f.key) })
	if found.own == 0 || found.specific == 0 && isTheirs {
		return false
	}
	p.found = append(p.found, found)
	return true
}

// isOwn reports whether a field is a group of this program that has an effect, or a key of one. Single values do
// not count, and neither does a group that is a single value here, because short names such as server are common.
func (p *placeFinder) isOwn(f field) bool {
	specs := keySpecs(p.loader.target)
	i, rest := matchKey(specs, f.key)
	if i < 0 || specs[i].status != ActiveKey {
		return false
	}
	group := indirect(p.loader.target.FieldByIndex(specs[i].index).Type)
	if !isMergeable(group) || rest == "" {
		return isMergeable(group) && f.value.kind == mappingNode
	}
	if group.Kind() != reflect.Struct {
		return true
	}
	inner, _ := matchKey(keySpecs(group), rest) // a ConfigMap has names of files, such as server.yaml
	return inner >= 0
}

// containsKey reports whether a key, or its first part, is one of some keys, whatever the notation.
func containsKey(keys []string, key string) bool {
	return slices.ContainsFunc(keys, func(k string) bool {
		_, found := cutRelaxed(key, k)
		return found
	})
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// keyInPath adds a key to a path of a file of somebody else: data["kubesvc.yaml"].
func keyInPath(path, key string) string {
	path = path[:min(len(path), maxPathBytes)]
	if !plainKey.MatchString(key) {
		return fmt.Sprintf("%s[%q]", path, key)
	}
	return joinPath(path, key)
}

// rejectOther reports files that configure another program of ours: no key in them has an effect here,
// besides those that both programs have. It returns whether they do.
func (l *loader) rejectOther(roots []*node) bool {
	if l.options.Program == "" {
		return false
	}
	other := l.keysOfOther(roots)
	if len(other) == 0 {
		return false
	}
	var keys []string
	for _, f := range other {
		key, _, _ := strings.Cut(shown(f.key), ".")
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	l.report.addAboutKey(other[0].at, "", "this seems to be the configuration of %s, not of %s: %s %s no effect here, and it has no key that only %s has: "+
		"name another file with --config", l.options.Other.Name, l.options.Program, shorten(keys), verb(len(keys)), l.options.Program)
	return true
}

// keysOfOther returns the keys by which files configure another program of ours; nil if they do not.
func (l *loader) keysOfOther(roots []*node) []field {
	specs := keySpecs(l.target)
	var other []field
	isSure, onlyOther := false, true
	for _, root := range roots {
		for _, f := range root.fields {
			i, _ := matchKey(specs, f.key)
			isTheirs := containsKey(l.options.Other.Keys, f.key)
			switch {
			case containsKey(l.options.Other.Shared, f.key):
			case i >= 0 && specs[i].status == ActiveKey && !isTheirs, !isTheirs && l.isRenamed(f.key):
				return nil
			case isTheirs:
				other = append(other, f)
				isSure = isSure || !l.knowsKey(f.key)
			default:
				onlyOther = false
			}
		}
	}
	if !isSure && !onlyOther {
		return nil
	}
	return other
}

// isRenamed reports whether a key at the top is read as another one.
func (l *loader) isRenamed(key string) bool {
	return slices.ContainsFunc(l.options.Renames, func(r Rename) bool {
		first, _, _ := strings.Cut(r.From, ".")
		_, found := cutRelaxed(key, first)
		return found
	})
}

// structOf returns the struct type to which into points.
func structOf(into any) reflect.Type { return indirect(reflect.TypeOf(into)) }
