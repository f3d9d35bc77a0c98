package manifests

import (
	"encoding/json"
	"strings"
	"testing"
)

func FuzzReadDocuments(f *testing.F) {
	f.Add("a: b\n---\n{}")
	f.Add(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"A","metadata":{"name":"x"}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range readDocuments(strings.NewReader(text), "x").Documents {
			if d.Kind == "" || d.APIVersion == "" || d.Metadata.Name+d.Metadata.GenerateName == "" || !json.Valid(d.Raw) {
				t.Errorf("%q gave %+v", text, d)
			}
		}
	})
}
