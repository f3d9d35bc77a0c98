package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// patchStep is one operation of a JSON patch.
type patchStep struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"` // nil for remove
}

// AttachPatch returns the JSON patch that makes a Service select a live object:
// a workload, by its template, or a pod. It is nil where there is nothing to do.
func AttachPatch(service, target Manifest) ([]byte, error) {
	selector, err := selectorOf(service)
	if err != nil {
		return nil, err
	}
	path, labels := labelsOf(target)
	var patch []patchStep
	if labels == nil && len(selector) > 0 {
		patch = append(patch, patchStep{"add", path, object{}})
	}
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		op := "add"
		if _, there := labels[key]; there {
			op = "replace"
		}
		patch = append(patch, patchStep{op, path + "/" + escape(key), selector[key]})
	}
	return encodePatch(patch), nil
}

// DetachPatch returns the JSON patch after which a Service no longer selects a
// live object. It is nil where there is nothing to do.
func DetachPatch(service, target Manifest) ([]byte, error) {
	selector, err := selectorOf(service)
	if err != nil {
		return nil, err
	}
	path, labels := labelsOf(target)
	var patch []patchStep
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if _, there := labels[key]; there {
			patch = append(patch, patchStep{Op: "remove", Path: path + "/" + escape(key)})
		}
	}
	return encodePatch(patch), nil
}

// labelsOf returns where the labels that a Service selects by are, and what they
// are: nil where there is no such object yet.
func labelsOf(target Manifest) (string, object) {
	path := "/metadata/labels"
	if target.template() != nil {
		path = "/spec/template/metadata/labels"
	}
	labels, _ := selectable(target)["labels"].(object)
	return path, labels
}

func encodePatch(patch []patchStep) []byte {
	if patch == nil {
		return nil
	}
	raw, err := json.Marshal(patch)
	if err != nil { // texts and an empty object can be encoded
		panic(fmt.Sprintf("encode a patch: %v", err))
	}
	return raw
}

// escape writes a key as a segment of a JSON pointer.
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
