package configfile

import (
	"fmt"
	"reflect"
	"strings"
)

// override reduces the values that the documents give to a key to those that count. A later
// document overrides an earlier one, except that groups are merged. Null means that the key is not
// set, in any document. Within a document, groups in different notations are merged, and any other
// repetition is reported. Values must be in the order of their layers.
func (d *decoder) override(p location, values []field, target reflect.Type) []field {
	var kept []field
	for _, f := range values {
		switch last := len(kept) - 1; {
		case f.value.kind == nullNode:
		case last < 0 || canMerge(kept[last], f, target):
			kept = append(kept, f)
		case f.layer == kept[last].layer:
			d.reportDuplicate(p.path, f.at, firstOfLayer(kept, f.layer).at)
		default:
			d.noteReplacedList(p, kept[last], f, target)
			kept = append(kept[:0], f)
		}
	}
	return kept
}

// canMerge reports whether two values of a key are groups that are merged. Types that decode
// themselves must see each repetition in a document, so that they can report it.
func canMerge(earlier, later field, target reflect.Type) bool {
	if earlier.value.kind != mappingNode || later.value.kind != mappingNode {
		return false
	}
	return isMergeable(target) || isUnmarshaler(target) && earlier.layer != later.layer
}

func isUnmarshaler(t reflect.Type) bool {
	return t.Implements(unmarshalerType) || reflect.PointerTo(t).Implements(unmarshalerType)
}

func firstOfLayer(fields []field, layer int) field {
	for _, f := range fields {
		if f.layer == layer {
			return f
		}
	}
	return fields[0]
}

// noteReplacedList adds a notice if a list of groups replaces another, because users may expect
// that their accounts are added to those of another file.
func (d *decoder) noteReplacedList(p location, replaced, by field, target reflect.Type) {
	if target.Kind() != reflect.Slice || isLeaf(target) || len(replaced.value.items) == 0 || p.isInactive() {
		return
	}
	d.report.Notices = append(d.report.Notices,
		fmt.Sprintf("%s: %s replaces the list at %s: lists of several files are not joined", by.at, p.path, replaced.at))
}

// mergeNodes merges two groups whose keys are not known. Keys of high override those of low.
func mergeNodes(low, high *node) *node {
	if low.kind != mappingNode || high.kind != mappingNode {
		return high
	}
	merged := &node{kind: mappingNode, at: high.at}
	for _, f := range low.fields {
		if over, found := fieldFold(high, f.key); !found || over.value.kind == nullNode {
			merged.fields = append(merged.fields, f)
		}
	}
	for _, f := range high.fields {
		if under, found := fieldFold(low, f.key); found {
			if f.value.kind == nullNode {
				continue
			}
			f.value = mergeNodes(under.value, f.value)
		}
		merged.fields = append(merged.fields, f)
	}
	return merged
}

// fieldFold returns the first field of a group with a key, ignoring case.
func fieldFold(n *node, key string) (field, bool) {
	for _, f := range n.fields {
		if strings.EqualFold(f.key, key) {
			return f, true
		}
	}
	return field{}, false
}
