package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette/internal/formerchart"
)

const deploy = "../../deploy"

// TestClusterAcceptsForms lets an API server accept the plain manifests and the examples of Kustomize, as kubectl apply sends them.
func TestClusterAcceptsForms(t *testing.T) {
	needCluster(t)
	manifests, err := filepath.Glob(deploy + "/manifests/*.yaml")
	if err != nil || len(manifests) < 4 {
		t.Fatalf("got the manifests %v, %v", manifests, err)
	}
	for _, file := range manifests {
		t.Run(filepath.Base(file), func(t *testing.T) { accept(t, file) })
	}
	examples, err := filepath.Glob(deploy + "/kustomize/examples/*")
	if err != nil || len(examples) < 3 {
		t.Fatalf("got the examples %v, %v", examples, err)
	}
	for _, directory := range examples {
		t.Run(filepath.Base(directory), func(t *testing.T) {
			resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), directory)
			if err != nil {
				t.Fatal(err)
			}
			text, err := resources.AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "objects.yaml")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			accept(t, file)
		})
	}
}

// accept shows objects to the API server, which must know each field.
func accept(t *testing.T, file string) {
	t.Helper()
	out, err := plane.KubectlCombinedOutput(t.Context(), "apply", "--dry-run=server", "--validate=strict", "-f", file)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "(server dry run)") && !strings.Contains(line, "last-applied-configuration") {
			t.Errorf("kubectl says: %s", line)
		}
	}
}

// TestChartAcceptsConvertedValues converts values of the predecessor's chart, and renders the chart with the result, whose schema knows no
// other values than its own.
func TestChartAcceptsConvertedValues(t *testing.T) {
	c := load(t)
	files, err := filepath.Glob("../../internal/formerchart/testdata/*.input.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("got the files %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			input, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			converted, err := formerchart.Convert(input)
			if err != nil {
				t.Fatal(err)
			}
			var values map[string]any
			if err := yaml.Unmarshal(converted.Values, &values); err != nil {
				t.Fatal(err)
			}
			if got := text(t, objects(t, mustRender(t, c, values))); !strings.Contains(got, `"kind":"Deployment"`) || strings.Contains(got, "HIDDEN") {
				t.Errorf("got %s", got)
			}
		})
	}
}
