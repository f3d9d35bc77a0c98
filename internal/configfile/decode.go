package configfile

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/vedette-io/vedette/internal/nearest"
)

// decoder fills structs from nodes.
type decoder struct {
	report   *Report
	options  Options
	original *node // the tree before renames, in which placeholders look
}

// place is where the decoder stands.
type place struct {
	path   string
	unused bool
}

func (p place) key(s spec) place     { return place{join(p.path, s.name), p.unused || s.unused} }
func (p place) named(k string) place { return place{join(p.path, k), p.unused} }
func (p place) item(i int) place     { return place{index(p.path, i), p.unused} }

// structure fills a struct from the keys of several mappings: nested and dotted
// keys of one group come as several.
func (d *decoder) structure(p place, from []*node, target reflect.Value) {
	specs := specsOf(target.Type())
	given := make([][]field, len(specs))
	for _, n := range from {
		for _, f := range n.fields {
			i, rest := match(specs, f.key)
			if i < 0 {
				d.unknown(p, f, target.Type())
				continue
			}
			if rest != "" {
				f.value = &node{shape: mapping, at: f.at, fields: []field{{key: rest, at: f.at, value: f.value}}}
			}
			given[i] = append(given[i], f)
		}
	}
	for i, s := range specs {
		d.field(p.key(s), given[i], target.FieldByIndex(s.index))
	}
}

func (d *decoder) unknown(p place, f field, within reflect.Type) {
	path := join(p.path, f.key)
	first, _, _ := strings.Cut(f.key, ".")
	hints := nearest.To(first, namesOf(specsOf(within)))
	if hints == nil && p.path == "" {
		hints = elsewhere(within, f.key)
	}
	if hints == nil {
		d.report.Add(f.at, path, "unknown key %q", path)
		return
	}
	d.report.Add(f.at, path, "unknown key %q: did you mean %q?", path, hints[0])
}

// field fills one struct field from all that was given for it.
func (d *decoder) field(p place, given []field, target reflect.Value) {
	given = d.once(p, given, mayMerge(target.Type()))
	switch {
	case len(given) == 0:
	case len(given) == 1:
		d.value(p, given[0].value, target)
	default:
		var parts []*node
		for _, f := range given {
			parts = append(parts, f.value)
		}
		d.groups(p, parts, target)
	}
}

func mayMerge(t reflect.Type) bool {
	t = indirect(t)
	return !isLeaf(t) && t.Kind() == reflect.Struct || t.Kind() == reflect.Map
}

// once drops what is null, and all but the first of what was given twice.
// Groups of keys may come in several parts.
func (d *decoder) once(p place, given []field, merge bool) []field {
	var kept []field
	for _, f := range given {
		if f.value.shape == nothing {
			continue
		}
		if len(kept) > 0 && !(merge && f.value.shape == mapping && kept[0].value.shape == mapping) {
			d.twice(p.path, f.at, kept[0].at)
			continue
		}
		kept = append(kept, f)
	}
	return kept
}

func (d *decoder) twice(path string, at, first Position) {
	d.report.Add(at, path, "%q is given twice: here and at %s", path, first)
}

// value fills any target from one node.
func (d *decoder) value(p place, n *node, target reflect.Value) {
	if n.shape == nothing {
		return
	}
	if target.Kind() == reflect.Pointer {
		d.pointer(p, n, target)
		return
	}
	if u, ok := target.Addr().Interface().(Unmarshaler); ok {
		d.set(p, n)
		u.UnmarshalConfig(Value{decoder: d, node: n, place: p})
		return
	}
	switch {
	case target.Kind() == reflect.Slice:
		d.list(p, n, target)
	case mayMerge(target.Type()):
		d.groups(p, []*node{n}, target)
	default:
		d.set(p, n)
		d.scalar(p, n, target)
	}
}

func (d *decoder) pointer(p place, n *node, target reflect.Value) {
	fresh := reflect.New(target.Type().Elem())
	setDefaults(fresh.Elem())
	d.value(p, n, fresh.Elem())
	target.Set(fresh)
}

// groups fills a struct or a map, which may come in several parts.
func (d *decoder) groups(p place, parts []*node, target reflect.Value) {
	for _, n := range parts {
		if n.shape != mapping {
			d.wrong(p, n, "a group of keys")
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
		d.freeKeys(p, parts, target)
		return
	}
	d.structure(p, parts, target)
}

// freeKeys fills a map, whose keys the user chooses: dots have no meaning.
func (d *decoder) freeKeys(p place, parts []*node, target reflect.Value) {
	target.Set(reflect.MakeMap(target.Type()))
	seen := map[string]Position{}
	for _, part := range parts {
		for _, f := range part.fields {
			below := p.named(f.key)
			if first, ok := seen[f.key]; ok {
				d.twice(below.path, f.at, first)
				continue
			}
			seen[f.key] = f.at
			value := reflect.New(target.Type().Elem()).Elem()
			setDefaults(value)
			d.value(below, f.value, value)
			target.SetMapIndex(reflect.ValueOf(f.key), value)
		}
	}
}

// list fills a slice: from a list, or from one value that holds several joined
// by commas, as Spring has it. What stood in the slice as default is gone.
func (d *decoder) list(p place, n *node, target reflect.Value) {
	leaf := isLeaf(target.Type())
	if leaf {
		d.set(p, n)
	}
	if n.shape == scalar && leaf {
		n = d.split(p, n)
	}
	if n == nil {
		return
	}
	if n.shape != list {
		d.wrong(p, n, "a list")
		return
	}
	single := leaf && !reflect.PointerTo(target.Type().Elem()).Implements(unmarshaler)
	out := reflect.MakeSlice(target.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		setDefaults(out.Index(i))
		if single {
			d.scalar(p.item(i), item, out.Index(i))
		} else {
			d.report.entries[p.item(i).path] = item.at
			d.value(p.item(i), item, out.Index(i))
		}
	}
	target.Set(out)
}

// split makes a list of "a, b"; nil where the text could not be had.
func (d *decoder) split(p place, n *node) *node {
	text, ok := d.text(p, n)
	if !ok {
		return nil
	}
	out := &node{shape: list, at: n.at}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out.items = append(out.items, &node{shape: scalar, at: n.at, text: part, raw: true})
		}
	}
	return out
}

// text returns a scalar's text with its placeholders filled in.
func (d *decoder) text(p place, n *node) (string, bool) {
	text := n.text
	if !n.raw && strings.Contains(text, "${") {
		e := expander{root: d.original, env: d.options.lookup, left: maxExpansions}
		expanded, err := e.expand(text)
		if err != nil {
			if !p.unused {
				d.report.Add(n.at, p.path, "%q: %s", p.path, err)
			}
			return "", false
		}
		text = expanded
	}
	if reference := isReference(text); reference != "" && !p.unused {
		d.report.Add(n.at, p.path, "%q holds an %s reference, which this version can't resolve: give the value or a ${PLACEHOLDER}", p.path, reference)
		return "", false
	}
	return text, true
}

// isReference returns the prefix of a reference to a secret, or "". Passed on
// as it stands, the reference itself would be used as a password or a path.
func isReference(text string) string {
	for _, prefix := range []string{"encrypted:", "encryptedFile:"} {
		if strings.HasPrefix(text, prefix) {
			return prefix
		}
	}
	return ""
}

// set notes that a path was given. Who gives it last is remembered.
func (d *decoder) set(p place, n *node) {
	d.report.settings[p.path] = setting{at: n.at, unused: p.unused}
}

// wrong reports that something of another type stands in a place.
func (d *decoder) wrong(p place, n *node, want string) {
	d.report.Add(n.at, p.path, "%q must be %s, and %s stands there", p.path, want, n)
}

func (d *decoder) wrongText(p place, n *node, want, text string) {
	d.report.Add(n.at, p.path, "%q must be %s, and %s stands there", p.path, want, quote(text))
}

// quote shortens what a user wrote for a message.
func quote(text string) string {
	if len(text) > 60 {
		return fmt.Sprintf("%.60q…", text)
	}
	return fmt.Sprintf("%q", text)
}
