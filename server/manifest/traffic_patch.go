package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"` // nil for remove
}

// AttachPatch returns the JSON patch after which a Service selects a live object, by its
// template or as a pod. It is nil if nothing changes.
func AttachPatch(service, target Manifest) ([]byte, error) {
	selector, err := serviceSelector(service)
	if err != nil {
		return nil, err
	}
	path, labels := podLabels(target)
	var patch []patchOperation
	if labels == nil && len(selector) > 0 {
		patch = append(patch, patchOperation{"add", path, object{}})
	}
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		op := "add"
		if _, exists := labels[key]; exists {
			op = "replace"
		}
		patch = append(patch, patchOperation{op, path + "/" + escapePointer(key), selector[key]})
	}
	return encodePatch(patch), nil
}

// DetachPatch returns the JSON patch after which a Service does not select a live object any
// more. It is nil if nothing changes.
func DetachPatch(service, target Manifest) ([]byte, error) {
	selector, err := serviceSelector(service)
	if err != nil {
		return nil, err
	}
	path, labels := podLabels(target)
	var patch []patchOperation
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if _, exists := labels[key]; exists {
			patch = append(patch, patchOperation{Op: "remove", Path: path + "/" + escapePointer(key)})
		}
	}
	return encodePatch(patch), nil
}

// podLabels returns the path of the labels that a Service selects, and the labels, or nil if
// there are none.
func podLabels(target Manifest) (string, object) {
	path := "/metadata/labels"
	if target.templateMetadata() != nil {
		path = "/spec/template/metadata/labels"
	}
	labels, _ := podMetadata(target)["labels"].(object)
	return path, labels
}

func encodePatch(patch []patchOperation) []byte {
	if patch == nil {
		return nil
	}
	raw, err := json.Marshal(patch)
	if err != nil { // strings and empty objects can be encoded
		panic(fmt.Sprintf("encode a patch: %v", err))
	}
	return raw
}

func escapePointer(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
