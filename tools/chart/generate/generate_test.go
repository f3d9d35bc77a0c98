package main

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const deploy = "../../../deploy"

func mustLoad(t *testing.T) chart {
	t.Helper()
	c, err := loadChart(filepath.Join(deploy, "helm", "vedette"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// build returns the objects of a Kustomization as "kubectl kustomize" does.
func build(t *testing.T, directory string) []object {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), directory)
	if err != nil {
		t.Fatal(err)
	}
	var objects []object
	for _, r := range resources.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		var o object
		if err := yaml.Unmarshal(text, &o); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

// overlay returns the directory of a Kustomization that uses others of this repository.
func overlay(t *testing.T, content string, files map[string]string) string {
	t.Helper()
	root, err := filepath.Abs(deploy)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	relative, err := filepath.Rel(directory, filepath.Join(root, "kustomize"))
	if err != nil {
		t.Fatal(err)
	}
	content = strings.ReplaceAll(content, "KUSTOMIZE", relative)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(directory, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return directory
}

// TestKustomizationsAreTheChart builds each base, alone and with each component, and compares the objects with those that the chart
// renders for the same values. The configuration is compared as the environment variables and the file say it together.
func TestKustomizationsAreTheChart(t *testing.T) {
	c := mustLoad(t)
	for _, p := range slices.Concat([]component{{name: "server", base: server}, {name: "agent", base: agent}}, components) {
		t.Run(p.name, func(t *testing.T) {
			directory := filepath.Join(deploy, "kustomize", p.name)
			if p.values != nil {
				directory = overlay(t, "resources: [KUSTOMIZE/"+p.base.name+"]\ncomponents: [KUSTOMIZE/components/"+p.name+"]\n", nil)
			}
			got := byID(t, p, build(t, directory))
			rendered, err := p.base.render(c, p.values)
			if err != nil {
				t.Fatal(err)
			}
			before, err := p.base.render(c, nil)
			if err != nil {
				t.Fatal(err)
			}
			variables, err := p.variables(before, rendered)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range rendered {
				addVariables(o, variables)
			}
			want := byID(t, p, rendered)
			for id, o := range want {
				if other, ok := got[id]; !ok {
					t.Errorf("%s is missing", id)
				} else if !reflect.DeepEqual(o, other) {
					t.Errorf("%s: got\n%s\nwant\n%s", id, encode(other), encode(o))
				}
			}
			for id := range got {
				if _, ok := want[id]; !ok {
					t.Errorf("the chart has no %s", id)
				}
			}
		})
	}
}

// byID returns objects in a form in which they can be compared: without the suffix that Kustomize gives to the name of a generated
// ConfigMap, and without the content of it, which TestConfigurationOfBases compares.
func byID(t *testing.T, p component, objects []object) map[string]object {
	t.Helper()
	all := map[string]object{}
	for _, o := range objects {
		suffixed := ""
		if o.kind() == "ConfigMap" {
			if suffixed = o.name(); !strings.HasPrefix(suffixed, p.base.configMap) {
				t.Errorf("unexpected ConfigMap %s", suffixed)
			}
			continue
		}
		all[o.id()] = sorted(o).(map[string]any)
	}
	for id, o := range all {
		text := encode(o)
		for _, other := range objects {
			if other.kind() == "ConfigMap" {
				text = strings.ReplaceAll(text, "name: "+other.name()+"\n", "name: "+p.base.configMap+"\n")
			}
		}
		var renamed object
		if err := yaml.Unmarshal([]byte(text), &renamed); err != nil {
			t.Fatal(err)
		}
		all[id] = renamed
	}
	return all
}

// sorted returns content with lists of named things ordered, because a patch cannot say at which place it adds one.
func sorted(content any) any {
	switch content := content.(type) {
	case object:
		return sorted(map[string]any(content))
	case []any:
		for i := range content {
			content[i] = sorted(content[i])
		}
		slices.SortStableFunc(content, func(a, b any) int {
			x, isMap := a.(map[string]any)
			y, _ := b.(map[string]any)
			if !isMap || x["name"] == nil || y["name"] == nil {
				return 0
			}
			return strings.Compare(x["name"].(string), y["name"].(string))
		})
	case map[string]any:
		for name := range content {
			content[name] = sorted(content[name])
		}
	}
	return content
}

// TestOverlays checks what users of Kustomize change: namespace, images, and files beside the base's configuration.
func TestOverlays(t *testing.T) {
	objects := build(t, overlay(t, `
namespace: mine
resources: [KUSTOMIZE/server, KUSTOMIZE/agent]
images:
- {name: ghcr.io/vedette-io/vedette-agent, newName: registry.example.com/a, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
configMapGenerator:
- {name: spin-armory-agent, behavior: merge, files: [vedette-agent-local.yml]}
`, map[string]string{"vedette-agent-local.yml": "kubernetes: {accounts: [{name: prod, serviceAccount: true}]}\n"}))
	text := documents(objects)
	for _, want := range []string{
		"image: registry.example.com/a@sha256:0000", "image: ghcr.io/vedette-io/vedette-server:v",
		"vedette-agent-local.yml: |\n    kubernetes: {accounts: [{name: prod", "vedette-agent.yml: |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no object contains %q:\n%s", want, text)
		}
	}
	for _, o := range objects {
		namespace, _ := at(o, "metadata")["namespace"].(string)
		if isCluster := strings.HasPrefix(o.kind(), "ClusterRole"); isCluster != (namespace == "") || !isCluster && namespace != "mine" {
			t.Errorf("%s has the namespace %q", o.id(), namespace)
		}
		subjects, _ := o["subjects"].([]any)
		for _, subject := range subjects {
			if got := subject.(map[string]any)["namespace"]; got != "mine" {
				t.Errorf("%s is for a ServiceAccount in namespace %v", o.id(), got)
			}
		}
	}
}

// TestGeneratedFilesAreCurrent renders everything again, and compares it with the files of the repository.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	copied := t.TempDir()
	for _, directory := range []string{"helm", "kustomize", "manifests"} {
		if err := os.CopyFS(filepath.Join(copied, directory), os.DirFS(filepath.Join(deploy, directory))); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(copied); err != nil {
		t.Fatal(err)
	}
	for _, directory := range []string{"kustomize", "manifests"} {
		got, want := filesBelow(t, filepath.Join(copied, directory)), filesBelow(t, filepath.Join(deploy, directory))
		if len(want) < 4 {
			t.Fatalf("%s has %d files", directory, len(want))
		}
		names := maps.Clone(got)
		maps.Copy(names, want)
		for name := range names {
			if got[name] != want[name] {
				t.Errorf("deploy/%s%s is not what the chart renders: run go generate -C tools/chart ./generate", directory, name)
			}
		}
	}
}

func filesBelow(t *testing.T, directory string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(directory, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[path[len(directory):]] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
