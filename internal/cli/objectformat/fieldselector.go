package objectformat

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/vedette-io/vedette"
)

// FieldSelector is --field-selector.
type FieldSelector struct {
	text     string
	selector fields.Selector
}

// ParseFieldSelector returns a selector; nil for an empty text.
func ParseFieldSelector(text string) (*FieldSelector, error) {
	if text == "" {
		return nil, nil
	}
	parsed, err := fields.ParseSelector(text)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "invalid --field-selector %q: %w", text, err)
	}
	if parsed.Empty() {
		return nil, nil
	}
	return &FieldSelector{text, parsed}, nil
}

// String returns the selector as it was written.
func (s *FieldSelector) String() string {
	if s == nil {
		return ""
	}
	return s.text
}

// field is a field that API servers select by, and its value if the object has none.
type field struct {
	path     string // empty for the name of the field
	fallback string
}

var metadataFields = map[string]field{"metadata.name": {}, "metadata.namespace": {}}

// selectableFields are the fields by which API servers select objects of their own kinds. Those of a CustomResourceDefinition
// are known to its cluster only, and so is what agents may leave out: the type of a Secret, of which they read only the metadata, and
// what the strict preset of redaction cuts.
var selectableFields = map[vedette.Kind]map[string]field{
	{Name: "Pod"}: {"spec.nodeName": {}, "spec.restartPolicy": {}, "spec.serviceAccountName": {},
		"spec.hostNetwork": {fallback: "false"}, "status.phase": {}, "status.podIP": {}, "status.podIPs": {path: "status.podIP"},
		"status.nominatedNodeName": {}},
	{Name: "Node"}:                                  {"spec.unschedulable": {fallback: "false"}},
	{Name: "Namespace"}:                             {"status.phase": {}, "name": {path: "metadata.name"}},
	{Name: "Service"}:                               {"spec.clusterIP": {}, "spec.type": {}},
	{Group: "apps", Name: "ReplicaSet"}:             {"status.replicas": {fallback: "0"}},
	{Group: "batch", Name: "Job"}:                   {"status.successful": {path: "status.succeeded", fallback: "0"}},
	{Group: "apps", Name: "Deployment"}:             {},
	{Group: "apps", Name: "StatefulSet"}:            {},
	{Group: "apps", Name: "DaemonSet"}:              {},
	{Group: "batch", Name: "CronJob"}:               {},
	{Name: "ConfigMap"}:                             {},
	{Name: "PersistentVolume"}:                      {},
	{Name: "PersistentVolumeClaim"}:                 {},
	{Group: "networking.k8s.io", Name: "Ingress"}:   {},
	{Group: "storage.k8s.io", Name: "StorageClass"}: {},
}

// IsCached reports whether what agents report is enough to evaluate the selector. Otherwise only the clusters can, which
// also say which fields they do not know.
func (s *FieldSelector) IsCached(kind vedette.Kind) bool {
	for _, r := range s.selector.Requirements() {
		if _, ok := fieldOf(kind, r.Field); !ok {
			return false
		}
	}
	return true
}

func fieldOf(kind vedette.Kind, name string) (field, bool) {
	f, ok := metadataFields[name]
	if !ok {
		f, ok = selectableFields[kind][name]
	}
	if ok && f.path == "" {
		f.path = name
	}
	return f, ok
}

// Matches reports whether an object of a kind matches the selector, whose fields IsCached knows.
func (s *FieldSelector) Matches(kind vedette.Kind, object map[string]any) bool {
	set := fields.Set{}
	for _, r := range s.selector.Requirements() {
		f, _ := fieldOf(kind, r.Field)
		set[r.Field] = valueAt(object, f)
	}
	return s.selector.Matches(set)
}

func valueAt(object map[string]any, f field) string {
	value, _, err := unstructured.NestedFieldNoCopy(object, strings.Split(f.path, ".")...)
	if err != nil || value == nil {
		return f.fallback
	}
	return fmt.Sprint(value)
}
