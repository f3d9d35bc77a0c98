package objectformat

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
)

// TestFieldsAreReported checks that agents report the fields that are evaluated here, even with the strict preset. A field that they leave
// out would look as if no object had it.
func TestFieldsAreReported(t *testing.T) {
	r, err := redact.New(redact.Config{Preset: redact.PresetStrict}, nil, vedette.HeaderAnnotations)
	if err != nil {
		t.Fatal(err)
	}
	for kind, fields := range selectableFields {
		for name := range fields {
			f, _ := fieldOf(kind, name)
			object := map[string]any{"kind": kind.Name, "apiVersion": strings.TrimPrefix(kind.Group+"/v1", "/"), "metadata": map[string]any{"name": "a", "resourceVersion": "1", "uid": "u"}}
			var value any = "value"
			parts := strings.Split(f.path, ".")
			if parts[0] == "metadata" {
				continue
			}
			for _, part := range slices.Backward(parts[1:]) {
				value = map[string]any{part: value}
			}
			object[parts[0]] = value
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			o, _, err := r.ReadObject(nil, vedette.Resource{Kind: kind, Version: "v1"}, raw)
			if err != nil {
				t.Fatal(err)
			}
			var reported map[string]any
			if err := json.Unmarshal(o.Body, &reported); err != nil {
				t.Fatal(err)
			}
			if got := valueAt(reported, f); got != "value" {
				t.Errorf("%s of %s is not reported: got %s", name, kind, o.Body)
			}
		}
	}
}
