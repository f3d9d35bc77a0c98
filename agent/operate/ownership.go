package operate

import (
	"maps"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// mergeInputs are what was applied last and what is wanted now, which differ in what a merge
// takes away. What was applied last stands in the annotation. Where that is missing, the
// managed fields of server-side applies tell it, and what others own is spared. kubectl
// lacks this: its client-side apply leaves behind what a server-side apply wrote and the
// manifest no longer says.
func (r *run) mergeInputs(p resourcePath, current *liveObject, desired annotatedManifest) (original, modified []byte, err error) {
	if current.lastApplied != "" {
		return []byte(current.lastApplied), desired.raw, nil
	}
	tree, err := manifest.ParseObject(current.raw, "object")
	if err != nil {
		return nil, nil, decodeError(p, err)
	}
	owned := ownershipOf(tree, r.operator.cfg.Manager)
	if owned.applied == nil {
		return nil, desired.raw, nil
	}
	desiredTree, err := manifest.ParseObject(desired.raw, "manifest")
	if err != nil {
		return nil, nil, err
	}
	if p.isSecret() { // read as metadata only
		owned.addDataKeys(tree)
	}
	original = manifest.Manifest{Object: owned.original(tree)}.Encode()
	if p.isSecret() {
		tree["data"] = object{} // what others own of it must not be written
	}
	owned.keepOthers(desiredTree, tree)
	return original, manifest.Manifest{Object: desiredTree}.Encode(), nil
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
	entries, _ := manifest.Nested(tree, "metadata", "managedFields").([]any)
	for _, entry := range entries {
		fields, _ := manifest.Nested(entry, "fieldsV1").(object)
		if manifest.NestedString(entry, "manager") == manager && manifest.NestedString(entry, "operation") == "Apply" && manifest.NestedString(entry, "subresource") == "" {
			o.applied = unionFields(o.applied, fields)
		} else {
			o.others = unionFields(o.others, fields)
		}
	}
	return o
}

// unionFields merges two sets of fields.
func unionFields(a, b object) object {
	if a == nil || b == nil {
		return firstNonNil(a, b)
	}
	merged := maps.Clone(a)
	for path, subfields := range b {
		inner, _ := subfields.(object)
		existing, _ := a[path].(object)
		merged[path] = unionFields(existing, inner)
	}
	if len(a) == 0 || len(b) == 0 { // one of them owns the value itself
		merged["."] = object{}
	}
	return merged
}

func firstNonNil(a, b object) object {
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

// addDataKeys puts the keys of a Secret's data into one that was read without, as far as
// the managed fields name them. To take them away their names suffice.
func (o ownership) addDataKeys(tree object) {
	fields, _ := o.applied["f:data"].(object)
	data := object{}
	for path := range fields {
		if key, ok := strings.CutPrefix(path, "f:"); ok {
			data[key] = ""
		}
	}
	tree["data"] = data
}

// keepOthers adds to a manifest what others own of the maps and list elements that it no
// longer has. A merge would take them away as a whole; so it takes only what was the
// manager's own. What is added stands in the live object already.
func (o ownership) keepOthers(desired, live object) {
	keepOthersMembers(desired, live, o.applied, o.others)
}

func keepOthersMembers(desired, live, applied, others object) {
	for path, subfields := range others {
		name, isMember := strings.CutPrefix(path, "f:")
		otherSubfields, _ := subfields.(object)
		appliedSubfields, isApplied := applied[path].(object)
		value, exists := live[name]
		if !isMember || !isApplied || !exists || isLeaf(appliedSubfields) {
			continue
		}
		desiredValue, isDesired := desired[name]
		switch othersPart := othersPartOf(value, otherSubfields); {
		case !isDesired && othersPart != nil:
			desired[name] = othersPart
		case isDesired:
			desired[name] = keepOthersIn(desiredValue, value, appliedSubfields, otherSubfields)
		}
	}
}

// keepOthersIn goes on where the manifest has the value too.
func keepOthersIn(desired, live any, applied, others object) any {
	switch w := desired.(type) {
	case object:
		if l, ok := live.(object); ok {
			keepOthersMembers(w, l, applied, others)
		}
	case []any:
		if l, ok := live.([]any); ok {
			return keepOthersElements(w, l, applied, others)
		}
	}
	return desired
}

func keepOthersElements(desired, live []any, applied, others object) []any {
	for _, path := range slices.Sorted(maps.Keys(others)) {
		otherSubfields, _ := others[path].(object)
		appliedSubfields, isApplied := applied[path].(object)
		if !isApplied {
			continue
		}
		element, found := findElement(live, path)
		if !found {
			continue
		}
		if i := findManifestElement(desired, path); i >= 0 {
			desired[i] = keepOthersIn(desired[i], element, appliedSubfields, otherSubfields)
		} else if _, self := otherSubfields["."]; self || len(otherSubfields) == 0 {
			othersPart, _ := pickElement(element, path, otherSubfields, nil)
			desired = append(desired, othersPart)
		}
	}
	return desired
}

// othersPartOf is the part of a map or a list that others own; nil of anything else.
func othersPartOf(value any, others object) any {
	switch v := value.(type) {
	case object:
		if isLeaf(others) {
			return object{}
		}
		return pickMembers(v, others, nil)
	case []any:
		if !isLeaf(others) {
			return pickElements(v, others, nil)
		}
	}
	return nil
}
