// Package tablestest converts manifests to objects as an agent would send them. It decodes the
// whole manifest, so that tests can compare it with the agent's scanner.
package tablestest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/tables"
)

// Object returns the object of a JSON manifest. Its body is the manifest.
func Object(t testing.TB, manifest string) vedette.Object {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(manifest))
	decoder.UseNumber()
	var m map[string]any
	if err := decoder.Decode(&m); err != nil {
		t.Fatalf("decode manifest: %v\n%s", err, manifest)
	}
	var head struct {
		APIVersion, Kind string
		Metadata         struct {
			Name, Namespace, UID, ResourceVersion string
			CreationTimestamp                     time.Time
			Labels, Annotations                   map[string]string
			OwnerReferences                       []struct {
				APIVersion, Kind, Name, UID string
				Controller                  bool
			}
		}
	}
	if err := json.Unmarshal([]byte(manifest), &head); err != nil {
		t.Fatalf("decode metadata: %v\n%s", err, manifest)
	}
	meta := head.Metadata
	o := vedette.Object{
		Key: vedette.Key{Kind: kindOf(head.APIVersion, head.Kind), Namespace: meta.Namespace, Name: meta.Name},
		UID: meta.UID, ResourceVersion: meta.ResourceVersion, APIVersion: head.APIVersion,
		Labels: meta.Labels, Annotations: liftedAnnotations(meta.Annotations), Body: compact(t, manifest),
	}
	if !meta.CreationTimestamp.IsZero() {
		o.Created = meta.CreationTimestamp.Unix()
	}
	for i, r := range meta.OwnerReferences {
		if i == 0 || r.Controller {
			o.Owner = vedette.Owner{Kind: kindOf(r.APIVersion, r.Kind), Name: r.Name, UID: r.UID}
		}
	}
	o.Summary = summary(t, liftOf(o.Kind), m)
	return o
}

func kindOf(apiVersion, name string) vedette.Kind {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = ""
	}
	return vedette.Kind{Group: group, Name: name}
}

func liftedAnnotations(annotations map[string]string) map[string]string {
	var out map[string]string
	for key, value := range annotations {
		for _, prefix := range vedette.HeaderAnnotations {
			if strings.HasPrefix(key, prefix) {
				if out == nil {
					out = map[string]string{}
				}
				out[key] = value
			}
		}
	}
	return out
}

func compact(t testing.TB, manifest string) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(manifest)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func liftOf(kind vedette.Kind) vedette.Projection {
	lifts := tables.Projections()
	for _, l := range lifts {
		if l.Kind == kind {
			return l
		}
	}
	return lifts[0]
}

func summary(t testing.TB, lift vedette.Projection, m map[string]any) []byte {
	out := map[string]any{}
	for _, f := range lift.Fields {
		if v := valueAt(m, split(f.Path)); v != nil {
			out[f.Name] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(fmt.Errorf("encode summary: %w", err))
	}
	return raw
}

func split(path string) []string {
	const dot = "\x00"
	parts := strings.Split(strings.ReplaceAll(path, `\.`, dot), ".")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], dot, ".")
	}
	return parts
}

func valueAt(v any, path []string) any {
	if len(path) == 0 || v == nil {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		if path[0] == "#" {
			return len(v)
		}
		return valueAt(v[path[0]], path[1:])
	case []any:
		if path[0] == "#" {
			return len(v)
		}
		if path[0] == "*" {
			return valuesAt(v, path[1:])
		}
	}
	return nil
}

func valuesAt(list []any, path []string) any {
	out, found := make([]any, len(list)), false
	for i, element := range list {
		out[i] = valueAt(element, path)
		found = found || out[i] != nil
	}
	if !found {
		return nil
	}
	return out
}
