//go:build linux

package operate_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/vedette-io/vedette/agent/operate/apply"
)

// TestMergeRulesMatchOpenAPI compares our rules, field by field, with what
// kubectl's own reader finds in the documents of a real API server.
func TestMergeRulesMatchOpenAPI(t *testing.T) {
	must(t, startPlane())
	for apiVersion, kinds := range map[string][]string{
		"v1": {"Pod", "Service", "ConfigMap", "Node"}, "apps/v1": {"Deployment", "StatefulSet", "DaemonSet"}, "batch/v1": {"CronJob", "Job"},
		"networking.k8s.io/v1": {"Ingress", "NetworkPolicy"}, "autoscaling/v2": {"HorizontalPodAutoscaler"}, "apiextensions.k8s.io/v1": {"CustomResourceDefinition"},
	} {
		t.Run(apiVersion, func(t *testing.T) {
			body := getOpenAPI(t, apiVersion)
			ours, err := apply.ParseSchema(apiVersion, body)
			must(t, err)
			var document struct {
				Components struct{ Schemas map[string]*spec.Schema }
			}
			must(t, json.Unmarshal(body, &document))
			c := &rulesComparer{T: t, schemas: document.Components.Schemas, seen: map[*spec.Schema]bool{}}
			for _, kind := range kinds {
				if ours.Rules(kind) == nil {
					t.Errorf("%s: got no rules", kind)
					continue
				}
				c.compare(kind, ours.Rules(kind), strategicpatch.PatchMetaFromOpenAPIV3{Schema: c.findKind(kind), SchemaList: c.schemas})
			}
			if c.fields < 50 || apiVersion != "apiextensions.k8s.io/v1" && c.merged == 0 {
				t.Errorf("compared only %d fields, of which %d merge", c.fields, c.merged)
			}
		})
	}
}

func getOpenAPI(t *testing.T, apiVersion string) []byte {
	t.Helper()
	path := "/openapi/v3/apis/" + apiVersion
	if apiVersion == "v1" {
		path = "/openapi/v3/api/v1"
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, plane.URL+path, nil)
	must(t, err)
	resp, err := plane.Client().Do(req)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return body
}

// rulesComparer compares two readers of one document.
type rulesComparer struct {
	*testing.T
	schemas        map[string]*spec.Schema
	seen           map[*spec.Schema]bool
	fields, merged int
}

func (c *rulesComparer) findKind(kind string) *spec.Schema {
	for _, s := range c.schemas {
		var kinds []struct{ Kind string }
		if s.Extensions.GetObject("x-kubernetes-group-version-kind", &kinds) == nil && len(kinds) == 1 && kinds[0].Kind == kind {
			return s
		}
	}
	c.Fatalf("the document has no %s", kind)
	return nil
}

func (c *rulesComparer) compare(path string, ours strategicpatch.LookupPatchMeta, theirs strategicpatch.PatchMetaFromOpenAPIV3) {
	if c.seen[theirs.Schema] {
		return
	}
	c.seen[theirs.Schema] = true
	keys := []string{"noSuchField"}
	for key := range theirs.Schema.Properties {
		keys = append(keys, key)
	}
	for _, key := range keys {
		c.fields++
		for _, lookup := range []func(strategicpatch.LookupPatchMeta) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error){
			func(l strategicpatch.LookupPatchMeta) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
				return l.LookupPatchMetadataForStruct(key)
			},
			func(l strategicpatch.LookupPatchMeta) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
				return l.LookupPatchMetadataForSlice(key)
			},
		} {
			next, meta, err := lookup(ours)
			want, wanted, wantErr := lookup(theirs)
			if (err != nil) != (wantErr != nil) || meta.GetPatchMergeKey() != wanted.GetPatchMergeKey() || !slices.Equal(meta.GetPatchStrategies(), wanted.GetPatchStrategies()) {
				c.Errorf("%s.%s: %+v, %v; want %+v, %v", path, key, meta, err, wanted, wantErr)
			}
			if wanted.GetPatchMergeKey() != "" {
				c.merged++
			}
			if err == nil && wantErr == nil {
				c.compare(path+"."+key, next, want.(strategicpatch.PatchMetaFromOpenAPIV3))
			}
		}
	}
}
