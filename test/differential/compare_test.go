//go:build linux

package differential

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// normalize removes what may differ between two equal objects: names of namespaces, uids, times,
// and what the API server allocates.
func normalize(o object, s *side, k *kind) object {
	if o == nil {
		return nil
	}
	text := strings.ReplaceAll(string(encode(o)), s.namespace, "NAMESPACE")
	if uid, _ := nested(o, "metadata", "uid").(string); uid != "" {
		text = strings.ReplaceAll(text, uid, "UID")
	}
	var normalized object
	if err := json.Unmarshal([]byte(text), &normalized); err != nil {
		panic(err)
	}
	meta := normalized["metadata"].(object)
	delete(meta, "resourceVersion")
	delete(meta, "creationTimestamp")
	delete(meta, "deletionTimestamp")
	sortManagers(meta)
	if spec, is := normalized["spec"].(object); is && k.name == "Service" {
		for _, allocated := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
			if spec[allocated] != nil && spec["type"] != "ExternalName" {
				spec[allocated] = "allocated"
			}
		}
	}
	if k.secret { // the annotation of a Secret is a copy of its data, so we do not keep it beside server-side applies
		removeLastApplied(meta)
		delete(meta, "managedFields")
	}
	return normalized
}

func removeLastApplied(meta object) {
	annotations, _ := meta["annotations"].(object)
	delete(annotations, lastApplied)
	delete(annotations, "deprecated.daemonset.template.generation") // counts writes
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
}

// removeManagedFields removes managedFields and nulls. A server-side apply stores the nulls of a
// custom resource, and a merge removes them.
func removeManagedFields(o object) object {
	if o != nil {
		removeNulls(o)
		delete(o["metadata"].(object), "managedFields")
		delete(o["metadata"].(object), "generation")
		removeLastApplied(o["metadata"].(object))
	}
	return o
}

func sortManagers(meta object) {
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		delete(e.(object), "time")
	}
	slices.SortFunc(entries, func(a, b any) int { return cmp.Compare(string(encode(a)), string(encode(b))) })
}

// nested returns the value at a path.
func nested(from any, path ...string) any {
	for _, name := range path {
		o, _ := from.(object)
		from = o[name]
	}
	return from
}

// differences describes the differences of two values, one per line.
func differences(path string, a, b any) []string {
	x, areObjects := a.(object)
	y, bothObjects := b.(object)
	if !areObjects || !bothObjects {
		l, areLists := a.([]any)
		m, bothLists := b.([]any)
		if areLists && bothLists && len(l) == len(m) {
			return listDifferences(path, l, m)
		}
		if string(encode(a)) == string(encode(b)) {
			return nil
		}
		return []string{fmt.Sprintf("%s\n    kubectl: %s\n    vedette: %s", path, encode(a), encode(b))}
	}
	members := maps.Clone(x)
	maps.Copy(members, y)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		_, inX := x[name]
		_, inY := y[name]
		switch {
		case !inX:
			all = append(all, fmt.Sprintf("%s.%s\n    vedette only: %s", path, name, encode(y[name])))
		case !inY:
			all = append(all, fmt.Sprintf("%s.%s\n    kubectl only: %s", path, name, encode(x[name])))
		default:
			all = append(all, differences(path+"."+name, x[name], y[name])...)
		}
	}
	return all
}

func listDifferences(path string, a, b []any) (all []string) {
	for i := range a {
		all = append(all, differences(fmt.Sprintf("%s[%d]", path, i), a[i], b[i])...)
	}
	return all
}

func removeNulls(v any) {
	switch v := v.(type) {
	case object:
		maps.DeleteFunc(v, func(_ string, member any) bool { return member == nil })
		for _, member := range v {
			removeNulls(member)
		}
	case []any:
		for _, element := range v {
			removeNulls(element)
		}
	}
}
