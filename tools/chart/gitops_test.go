package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette/test/controlplane"
)

// The products' own definitions of their kinds, from their modules. Those of Flux's HelmReleases are not served; its Go types are.
var definitions = []struct{ module, file, name string }{
	{"github.com/argoproj/argo-cd/v3@v3.4.0", "manifests/crds/application-crd.yaml", "applications.argoproj.io"},
	{"github.com/fluxcd/source-controller@v1.8.0", "config/crd/bases/source.toolkit.fluxcd.io_ocirepositories.yaml",
		"ocirepositories.source.toolkit.fluxcd.io"},
}

var define = sync.OnceValue(func() error {
	for _, d := range definitions {
		out, err := exec.Command("go", "mod", "download", "-json", d.module).Output()
		var module struct{ Dir, Error string }
		if decodeErr := json.Unmarshal(out, &module); decodeErr != nil || module.Error != "" {
			return fmt.Errorf("download %s: %s %w", d.module, module.Error, errors.Join(decodeErr, err))
		}
		out, err = plane.KubectlCombinedOutput(context.Background(), "apply", "--server-side", "-f", filepath.Join(module.Dir, d.file))
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		err = plane.Await(context.Background(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+d.name, func(o controlplane.Object) bool {
			conditions, _ := at(o, "status", "conditions").([]any)
			return slices.ContainsFunc(conditions, func(c any) bool {
				condition, _ := c.(map[string]any)
				return condition["type"] == "Established" && condition["status"] == "True"
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
})

// documentsOf returns the objects in a file.
func documentsOf(t *testing.T, path string) (found []map[string]any) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(string(content), "\n---\n") {
		var o map[string]any
		if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		found = append(found, o)
	}
	return found
}

// at returns what is below a path of keys, or nil.
func at(o map[string]any, keys ...string) any {
	var v any = o
	for _, key := range keys {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// TestGitOpsExamples lets an API server accept the examples with the products' definitions, and renders the chart with their values.
func TestGitOpsExamples(t *testing.T) {
	notInShort(t) // the definitions are in large modules
	needCluster(t)
	if err := define(); err != nil {
		t.Fatal(err)
	}
	c := load(t)
	for product, kinds := range map[string][]string{"argocd": {"Application"}, "flux": {"OCIRepository", "HelmRelease"}} {
		for _, example := range []string{"server-and-agent", "agent", "front"} {
			t.Run(product+"/"+example, func(t *testing.T) {
				var got []string
				var values, release, namespace any
				file := filepath.Join(t.TempDir(), "objects.yaml")
				var applied strings.Builder
				for _, o := range documentsOf(t, filepath.Join(deploy, product, example+".yaml")) {
					got = append(got, o["kind"].(string))
					switch o["kind"] {
					case "HelmRelease":
						strictly(t, o, &helmv2.HelmRelease{})
						values, release, namespace = at(o, "spec", "values"), at(o, "spec", "releaseName"), at(o, "metadata", "namespace")
						continue
					case "Application":
						values, release = at(o, "spec", "source", "helm", "valuesObject"), at(o, "spec", "source", "helm", "releaseName")
						namespace = at(o, "spec", "destination", "namespace")
						at(o, "metadata").(map[string]any)["namespace"] = namespace // argocd is not in this cluster
					}
					text, err := yaml.Marshal(o)
					if err != nil {
						t.Fatal(err)
					}
					applied.WriteString("---\n" + string(text))
				}
				if !slices.Equal(got, kinds) {
					t.Fatalf("got %v, want %v", got, kinds)
				}
				if err := os.WriteFile(file, []byte(applied.String()), 0o600); err != nil {
					t.Fatal(err)
				}
				accept(t, file)
				rendered, err := render(c, release.(string), namespace.(string), values.(map[string]any))
				if err != nil {
					t.Fatal(err)
				}
				acceptRendered(t, rendered)
				if found := text(t, objects(t, rendered)); strings.Contains(found, `"kind":"Secret"`) {
					t.Error("the chart generates certificates, which these tools would replace each time")
				}
			})
		}
	}
}

// strictly checks that a type has all fields of an object.
func strictly(t *testing.T, o, into any) {
	t.Helper()
	text, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatal(err)
	}
}

func acceptRendered(t *testing.T, rendered map[string]string) {
	t.Helper()
	var manifest strings.Builder
	for _, path := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(path, ".yaml") {
			manifest.WriteString("---\n" + rendered[path] + "\n")
		}
	}
	file := filepath.Join(t.TempDir(), "rendered.yaml")
	if err := os.WriteFile(file, []byte(manifest.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	accept(t, file)
}

// TestServerSideAppliesReplaceTheSelector checks what the examples rely on for the Service spin-clouddriver: its selector becomes the
// server's, and nothing of the old one is left.
func TestServerSideAppliesReplaceTheSelector(t *testing.T) {
	needCluster(t)
	service := controlplane.Object{"metadata": controlplane.Object{"name": "spin-clouddriver"}, "spec": controlplane.Object{
		"selector": controlplane.Object{"app": "spin", "cluster": "spin-clouddriver"}, "ports": []controlplane.Object{{"name": "http", "port": 7002}}}}
	if err := plane.Create(t.Context(), "/api/v1/namespaces/a/services", service); err != nil {
		t.Fatal(err)
	}
	rendered, err := render(load(t), "vedette", "a", set("server.clouddriver.mode", "front"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "services.yaml")
	if err := os.WriteFile(file, []byte(rendered["vedette/templates/server/services.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := plane.KubectlCombinedOutput(t.Context(), "apply", "--server-side", "--force-conflicts", "-f", file); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got controlplane.Object
	if err := plane.Get(t.Context(), "/api/v1/namespaces/a/services/spin-clouddriver", &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"app.kubernetes.io/name": "vedette", "app.kubernetes.io/instance": "vedette", "app.kubernetes.io/component": "server",
		"vedette.io/clouddriver": "front"}
	if selector, _ := at(got, "spec", "selector").(map[string]any); !maps.Equal(selector, want) {
		t.Errorf("got the selector %v, want %v", selector, want)
	}
}

// TestSpinnakerServicePatch checks that the patch sets the addresses in a SpinnakerService of either API group, keeps what is there, and
// names the Service that the chart creates with its values.
func TestSpinnakerServicePatch(t *testing.T) {
	for _, group := range []string{"spinnaker.io", "spinnaker.armory.io"} {
		t.Run(group, func(t *testing.T) {
			directory := t.TempDir()
			root, err := filepath.Abs(deploy)
			if err != nil {
				t.Fatal(err)
			}
			relative, err := filepath.Rel(directory, filepath.Join(root, "spinnaker-operator"))
			if err != nil {
				t.Fatal(err)
			}
			for name, content := range map[string]string{
				"kustomization.yaml": "resources: [spinnaker.yaml]\ncomponents: [" + relative + "]\n",
				"spinnaker.yaml": "apiVersion: " + group + "/v1alpha2\nkind: SpinnakerService\nmetadata: {name: mine}\n" +
					"spec: {spinnakerConfig: {config: {version: 1.35.0}, profiles: {orca: {tasks: {days: 7}}, gate: {services: {fiat: {enabled: true}}}}}}\n",
			} {
				if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), directory)
			if err != nil {
				t.Fatal(err)
			}
			built, err := resources.AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			var o map[string]any
			if err := yaml.Unmarshal(built, &o); err != nil {
				t.Fatal(err)
			}
			if o["apiVersion"] != group+"/v1alpha2" || at(o, "metadata", "name") != "mine" {
				t.Errorf("it is another object: %s", built)
			}
			profiles := at(o, "spec", "spinnakerConfig", "profiles").(map[string]any)
			if at(profiles, "orca", "tasks", "days") == nil || at(profiles, "gate", "services", "fiat", "enabled") != true {
				t.Errorf("settings are lost: %s", built)
			}
			address := "http://" + serviceName(t) + ":7002"
			for _, path := range []string{"orca.clouddriver", "orca.oort", "orca.mort", "orca.kato",
				"gate.services.clouddriver", "fiat.services.clouddriver", "igor.services.clouddriver", "rosco.services.clouddriver"} {
				if got := at(profiles, append(strings.Split(path, "."), "baseUrl")...); got != address {
					t.Errorf("%s.baseUrl is %v, want %s", path, got, address)
				}
			}
		})
	}
}

// serviceName returns the Service of the REST API with the values for the Operator, which must not be Clouddriver's.
func serviceName(t *testing.T) string {
	t.Helper()
	values := documentsOf(t, filepath.Join(deploy, "spinnaker-operator", "values.yaml"))[0]
	for _, o := range objects(t, mustRender(t, load(t), values)) {
		if o.Kind == "Service" && !strings.HasSuffix(o.Metadata.Name, "-grpc") {
			return o.Metadata.Name
		}
	}
	t.Fatal("the chart has no Service")
	return ""
}
