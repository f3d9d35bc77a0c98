package operate

import (
	"maps"
	"slices"
	"strings"
)

// sides are what was applied last and what is wanted now, which differ in what a merge
// takes away. What was applied last stands in the annotation. Where that is missing, the
// managed fields of server-side applies tell it, and what others own is spared. kubectl
// lacks this: its client-side apply leaves behind what a server-side apply wrote and the
// manifest no longer says.
func (o *Operator) sides(p place, at *live, w wanted) (original, modified []byte, err error) {
	if at.applied != "" {
		return []byte(at.applied), w.raw, nil
	}
	tree, err := parseObject(at.raw, "object")
	if err != nil {
		return nil, nil, senseless(p, err)
	}
	owned := ownershipOf(tree, o.cfg.Manager)
	if owned.applied == nil {
		return nil, w.raw, nil
	}
	wanted, err := parseObject(w.raw, "manifest")
	if err != nil {
		return nil, nil, err
	}
	if p.secret() { // read as metadata only
		owned.nameData(tree)
	}
	original = manifest{object: owned.original(tree)}.raw()
	if p.secret() {
		tree["data"] = object{} // what others own of it must not be written
	}
	owned.spare(wanted, tree)
	return original, manifest{object: wanted}.raw(), nil
}

// ownership is what the managed fields of an object say of one manager and of all
// others. Both are as in fieldsV1.
type ownership struct {
	applied object // what the manager applied server-side; nil for nothing
	others  object // what anybody else owns; that may be the same
}

// ownershipOf reads the managed fields of an object.
func ownershipOf(tree object, manager string) ownership {
	var o ownership
	entries, _ := dig(tree, "metadata", "managedFields").([]any)
	for _, entry := range entries {
		fields, _ := dig(entry, "fieldsV1").(object)
		if text(entry, "manager") == manager && text(entry, "operation") == "Apply" && text(entry, "subresource") == "" {
			o.applied = union(o.applied, fields)
		} else {
			o.others = union(o.others, fields)
		}
	}
	return o
}

// union merges two sets of fields.
func union(a, b object) object {
	if a == nil || b == nil {
		return firstSet(a, b)
	}
	merged := maps.Clone(a)
	for path, below := range b {
		inner, _ := below.(object)
		mine, _ := a[path].(object)
		merged[path] = union(mine, inner)
	}
	if len(a) == 0 || len(b) == 0 { // one of them owns the value itself
		merged["."] = object{}
	}
	return merged
}

func firstSet(a, b object) object {
	if a != nil {
		return a
	}
	return b
}

// original is the part of an object that the manager applied and nobody else owns: what
// a manifest that does not say it any more takes away. A granular map that was applied
// empty looks in the managed fields as one that is owned as a whole; that others own
// something in it tells the difference.
func (o ownership) original(tree object) object {
	return pickMembers(tree, o.applied, o.others)
}

// nameData puts the keys of a Secret's data into one that was read without, as far as
// the managed fields name them. To take them away their names suffice.
func (o ownership) nameData(tree object) {
	fields, _ := o.applied["f:data"].(object)
	data := object{}
	for path := range fields {
		if key, is := strings.CutPrefix(path, "f:"); is {
			data[key] = ""
		}
	}
	tree["data"] = data
}

// spare adds to a manifest what others own of the maps and list elements that it no
// longer has. A merge would take them away as a whole; so it takes only what was the
// manager's own. What is added stands in the live object already.
func (o ownership) spare(wanted, live object) {
	spareMembers(wanted, live, o.applied, o.others)
}

func spareMembers(wanted, live, applied, others object) {
	for path, below := range others {
		name, isMember := strings.CutPrefix(path, "f:")
		theirs, _ := below.(object)
		mine, both := applied[path].(object)
		value, there := live[name]
		if !isMember || !both || !there || leaf(mine) {
			continue
		}
		now, has := wanted[name]
		switch part := remainder(value, theirs); {
		case !has && part != nil:
			wanted[name] = part
		case has:
			wanted[name] = spareIn(now, value, mine, theirs)
		}
	}
}

// spareIn goes on where the manifest has the value too.
func spareIn(wanted, live any, applied, others object) any {
	switch w := wanted.(type) {
	case object:
		if l, is := live.(object); is {
			spareMembers(w, l, applied, others)
		}
	case []any:
		if l, is := live.([]any); is {
			return spareElements(w, l, applied, others)
		}
	}
	return wanted
}

func spareElements(wanted, live []any, applied, others object) []any {
	for _, path := range slices.Sorted(maps.Keys(others)) {
		theirs, _ := others[path].(object)
		mine, both := applied[path].(object)
		if !both {
			continue
		}
		element, found := elementAt(live, path)
		if !found {
			continue
		}
		if i := indexOf(wanted, path); i >= 0 {
			wanted[i] = spareIn(wanted[i], element, mine, theirs)
		} else if _, self := theirs["."]; self || len(theirs) == 0 {
			part, _ := pickElement(element, path, theirs, nil)
			wanted = append(wanted, part)
		}
	}
	return wanted
}

// remainder is the part of a map or a list that others own; nil of anything else.
func remainder(value any, others object) any {
	switch v := value.(type) {
	case object:
		if leaf(others) {
			return object{}
		}
		return pickMembers(v, others, nil)
	case []any:
		if !leaf(others) {
			return pickElements(v, others, nil)
		}
	}
	return nil
}
