package configfile

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/vedette-io/vedette/internal/textcheck"
)

// decoder decodes nodes into structs.
type decoder struct {
	report    *Report
	options   Options
	resolve   func(reference string) (string, error) // of Decode
	originals []*node                                // of Content
	hints     int                                    // unknown keys that were compared with ours

	expansions *expansionBudget
}

// location is the path that is being decoded.
type location struct {
	path   string
	status Status
	warn   bool // of the key itself, or of a group that holds it
	limits
}

func (p location) key(s keySpec) location {
	return location{joinPath(p.path, s.name), max(p.status, s.status), p.warn || s.warn, s.limits}
}
func (p location) withKey(k string) location { return p.at(joinPath(p.path, k)) }
func (p location) item(i int) location       { return p.at(indexPath(p.path, i)) }
func (p location) at(path string) location   { return location{path, p.status, p.warn, p.limits} }
func (p location) isInactive() bool          { return p.status != ActiveKey }

// decodeStruct fills a struct from the keys of several mappings, because the nested and dotted keys
// of one group are separate mappings.
func (d *decoder) decodeStruct(p location, nodes []*node, target reflect.Value) {
	specs := keySpecs(target.Type())
	values := make([][]field, len(specs))
	for _, n := range nodes {
		for _, f := range n.fields {
			i, rest := matchKey(specs, f.key)
			if i < 0 {
				d.handleUnknownKey(p, f, target.Type())
				continue
			}
			if rest != "" {
				f.value = &node{kind: mappingNode, at: f.at, fields: []field{{key: rest, at: f.at, value: f.value, layer: f.layer}}}
			}
			values[i] = append(values[i], f)
		}
	}
	for i, s := range specs {
		d.decodeField(p.key(s), values[i], target.FieldByIndex(s.index))
	}
}

// decodeField fills one struct field from all values that were given for it.
func (d *decoder) decodeField(p location, values []field, target reflect.Value) {
	values = d.override(p, d.withoutOtherProducts(p, values, target.Type()), target.Type())
	switch {
	case len(values) == 0:
	case len(values) == 1:
		d.decodeValue(p, values[0].value, target)
	case isMergeable(target.Type()):
		var parts []*node
		for _, f := range values {
			parts = append(parts, f.value)
		}
		d.decodeGroup(p, parts, target)
	default:
		merged := values[0].value
		for _, f := range values[1:] {
			merged = mergeNodes(merged, f.value)
		}
		d.decodeValue(p, merged, target)
	}
}

func isMergeable(t reflect.Type) bool {
	t = indirect(t)
	return !isLeaf(t) && t.Kind() == reflect.Struct || t.Kind() == reflect.Map
}

func (d *decoder) reportDuplicate(path string, at, first Position) {
	d.report.addAboutKey(at, path, "%q is set twice, here and at %s: remove one of them", path, first)
}

// decodeValue fills a target of any type from one node.
func (d *decoder) decodeValue(p location, n *node, target reflect.Value) {
	if n.kind == nullNode {
		return
	}
	if target.Kind() == reflect.Pointer {
		d.decodePointer(p, n, target)
		return
	}
	if u, ok := target.Addr().Interface().(Unmarshaler); ok {
		d.recordSetting(p, n)
		u.UnmarshalConfig(Value{decoder: d, node: n, location: p})
		return
	}
	switch {
	case target.Kind() == reflect.Slice:
		d.decodeList(p, n, target)
	case isMergeable(target.Type()):
		d.decodeGroup(p, []*node{n}, target)
	default:
		d.recordSetting(p, n)
		d.decodeScalar(p, n, target)
	}
}

func (d *decoder) decodePointer(p location, n *node, target reflect.Value) {
	element := reflect.New(target.Type().Elem())
	setDefaults(element.Elem())
	d.decodeValue(p, n, element.Elem())
	target.Set(element)
}

// decodeGroup fills a struct or a map from one or more mappings.
func (d *decoder) decodeGroup(p location, parts []*node, target reflect.Value) {
	for _, n := range parts {
		if n.kind != mappingNode {
			d.reportKind(p, n, "a group of keys")
			return
		}
	}
	if target.Kind() == reflect.Pointer {
		if target.IsNil() {
			target.Set(reflect.New(target.Type().Elem()))
			setDefaults(target.Elem())
		}
		target = target.Elem()
	}
	if target.Kind() == reflect.Map {
		d.decodeMap(p, parts, target)
		return
	}
	d.decodeStruct(p, parts, target)
}

// decodeMap fills a map. The user chooses its keys, so dots in them have no meaning.
func (d *decoder) decodeMap(p location, parts []*node, target reflect.Value) {
	target.Set(reflect.MakeMap(target.Type()))
	keys, values := d.collectEntries(p, parts)
	for _, key := range keys {
		value := reflect.New(target.Type().Elem()).Elem()
		setDefaults(value)
		d.decodeField(p.withKey(key), values[key], value)
		target.SetMapIndex(reflect.ValueOf(key), value)
	}
}

// collectEntries returns the keys of a map in the order of the files, and the values of each. Keys
// that a document sets twice are reported.
func (d *decoder) collectEntries(p location, parts []*node) (keys []string, values map[string][]field) {
	values = map[string][]field{}
	for _, part := range parts {
		for _, f := range part.fields {
			known := values[f.key]
			if len(known) > 0 && known[len(known)-1].layer == f.layer {
				d.reportDuplicate(p.withKey(f.key).path, f.at, known[len(known)-1].at)
				continue
			}
			if known == nil {
				keys = append(keys, f.key)
			}
			values[f.key] = append(known, f)
		}
	}
	return keys, values
}

// decodeList fills a slice from a list, or from one value with commas as in Spring. It replaces the
// default.
func (d *decoder) decodeList(p location, n *node, target reflect.Value) {
	leaf := isLeaf(target.Type())
	if leaf {
		d.recordSetting(p, n)
	}
	if n.kind == scalarNode && leaf {
		n = d.splitList(p, n)
	}
	if n == nil {
		return
	}
	if n.kind != listNode {
		d.reportKind(p, n, "a list")
		return
	}
	single := leaf && !reflect.PointerTo(target.Type().Elem()).Implements(unmarshalerType)
	out := reflect.MakeSlice(target.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		setDefaults(out.Index(i))
		if single {
			d.decodeScalar(p.item(i), item, out.Index(i))
		} else {
			d.report.entries[p.item(i).path] = item.at
			d.decodeValue(p.item(i), item, out.Index(i))
		}
	}
	target.Set(out)
}

// splitList splits a value like "a, b" into a list, or returns nil if the value has a problem.
func (d *decoder) splitList(p location, n *node) *node {
	text, ok := d.expandText(p, n)
	if !ok || !d.isUTF8(p, n, text) {
		return nil
	}
	out := &node{kind: listNode, at: n.at}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part != "" {
			out.items = append(out.items, &node{kind: scalarNode, at: n.at, text: part, literal: true})
		}
	}
	return out
}

// expandText returns a scalar's text with its placeholders expanded, and the secret in place of a
// reference to it.
func (d *decoder) expandText(p location, n *node) (string, bool) {
	text, hasSecret := n.text, false
	if !n.literal && strings.Contains(text, "${") {
		e := expander{roots: d.originals, env: d.options.lookup, remaining: maxExpansions, total: d.expansions}
		if !p.isInactive() {
			e.secrets = d.resolve
		}
		expanded, err := e.expand(text)
		if err != nil {
			if !p.isInactive() {
				d.report.Add(n.at, p.path, "%q: %s", p.path, err)
			}
			return "", false
		}
		text, hasSecret = expanded, len(e.found) > 0
		d.report.secrets.add(p.path, e.found...)
	}
	if p.isInactive() && containsReference(text) {
		d.report.secrets.add(p.path, text) // it is not resolved, but may contain a secret as it is
		return "", false
	}
	if hasSecret || p.isInactive() || secretReferencePrefix(text) == "" {
		return text, true
	}
	return d.resolveSecret(p, n, text)
}

// isUTF8 reports whether a text is valid UTF-8, and adds a problem if it is not. Files are, but
// variables of the environment and secrets may not be, and one such name would end the connection
// between agent and server.
func (d *decoder) isUTF8(p location, n *node, text string) bool {
	err := textcheck.UTF8(text)
	if err != nil {
		d.report.Add(n.at, p.path, "%q must not contain %s", p.path, err)
	}
	return err == nil
}

// recordSetting records that a path is set. A later call overrides an earlier one.
func (d *decoder) recordSetting(p location, n *node) {
	d.report.settings[p.path] = setting{at: n.at, unused: p.isInactive()}
}

func (d *decoder) reportKind(p location, n *node, want string) {
	d.report.addAboutKey(n.at, p.path, "%q must be %s, got %s", p.path, want, n)
}

func (d *decoder) reportText(p location, n *node, want, text string) {
	d.report.Add(n.at, p.path, "%q must be %s, got %s", p.path, want, quote(text))
}

// quote quotes and shortens a value for a message.
func quote(text string) string {
	if len(text) > 60 {
		return fmt.Sprintf("%.60q…", text)
	}
	return fmt.Sprintf("%q", text)
}
