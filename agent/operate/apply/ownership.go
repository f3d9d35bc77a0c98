package apply

import (
	"maps"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// inputs returns what was applied last and what is desired, whose difference the merge removes.
// What was applied last is the annotation. If the object has none, the managed fields of
// server-side applies replace it, and what other managers own is kept. kubectl lacks this: its
// client-side apply leaves the fields that a server-side apply wrote and the manifest dropped.
func (t ThreeWayMerge) inputs() (original, modified []byte, err error) {
	if t.LastApplied != "" {
		return []byte(t.LastApplied), t.Desired.raw, nil
	}
	tree, err := manifest.ParseObject(t.Live, "object")
	if err != nil {
		return nil, nil, vedette.Errorf(vedette.Unavailable, "the cluster's response for %s is invalid: %w", t.Key, err)
	}
	owned := ownershipOf(tree, t.Manager)
	if owned.applied == nil {
		return nil, t.Desired.raw, nil
	}
	desired, err := manifest.ParseObject(t.Desired.raw, "manifest")
	if err != nil {
		return nil, nil, err
	}
	isSecret := t.Key.Kind == secretKind
	if isSecret {
		owned.addDataKeys(tree)
	}
	original = manifest.Manifest{Object: owned.original(tree)}.Encode()
	if isSecret {
		tree["data"] = object{} // the values that others own are unknown, and must not be overwritten
	}
	owned.keepOthers(desired, tree)
	return original, manifest.Manifest{Object: desired}.Encode(), nil
}

// ownership splits the managed fields of an object into those of one manager and those of all
// others. Both have the form of fieldsV1.
type ownership struct {
	applied object // by the manager, server-side; nil for nothing
	others  object // owned by others; may overlap with applied
}

func ownershipOf(tree object, manager string) ownership {
	var o ownership
	entries, _ := manifest.Nested(tree, "metadata", "managedFields").([]any)
	for _, entry := range entries {
		fields, _ := manifest.Nested(entry, "fieldsV1").(object)
		if manifest.NestedString(entry, "manager") == manager && manifest.NestedString(entry, "operation") == "Apply" &&
			manifest.NestedString(entry, "subresource") == "" {
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
	if len(a) == 0 || len(b) == 0 { // one of them owns the value as a whole
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

// original returns the part of an object that the manager applied and no other manager owns. If
// the manifest no longer has it, the merge removes it. In managed fields, a granular map that was
// applied empty looks like a map that is owned as a whole; it is granular if others own members.
func (o ownership) original(tree object) object {
	return pickMembers(tree, o.applied, o.others)
}

// addDataKeys adds the data keys of a Secret that was read as metadata, as far as the managed
// fields name them. Values are not needed, because a patch removes members by name.
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

// keepOthers adds to a manifest what others own in maps and list elements that it no longer has.
// Without it, the merge would remove these as a whole. All that it adds is in the live object.
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

// keepOthersIn continues in a value that the manifest has too.
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

// othersPartOf returns the part of a map or list that others own, nil for other values.
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
