package chart

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/test/programs"
	"go.yaml.in/yaml/v3"
)

// TestRolesAreThoseThatTheAgentPrints compares the chart's roles with what "vedette-agent rbac" prints for the same account, right by right.
func TestRolesAreThoseThatTheAgentPrints(t *testing.T) {
	needCluster(t)
	bin := t.TempDir()
	if err := programs.Build(t.Context(), bin, "vedette-agent"); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := plane.ServiceAccountKubeconfig(t.Context(), namespace, "spin-armory-agent")
	if err != nil {
		t.Fatal(err)
	}
	c := load(t)
	const change = "ConfigMap,Secret,PersistentVolumeClaim,ServiceAccount,HorizontalPodAutoscaler,PodDisruptionBudget"
	const kinds = "ReplicaSet,Service,Ingress,DaemonSet,Deployment,Pod,StatefulSet,Job,CronJob,NetworkPolicy,Namespace,CustomResourceDefinition"
	for _, test := range []struct {
		name    string
		values  map[string]any // of agent.rbac
		account string         // further settings of the account, in YAML; also agent.account.settings, if rbac does not have the same
		flags   []string
	}{
		{"default", nil, "", []string{"--kinds", kinds, "--change", change}},
		{"read-only", map[string]any{"readOnly": true}, "", []string{"--kinds", kinds, "--change", change, "--read-only"}},
		{"namespaces", map[string]any{"namespaces": []any{"a", "b"}}, "namespaces: [a, b], onlyNamespacedResources: true", []string{"--kinds", kinds, "--change", change}},
		{"kinds", map[string]any{"kinds": []any{"Pod", "Deployment"}, "change": []any{}}, "kinds: [Pod, Deployment]", nil},
		{"one kind", map[string]any{"kinds": []any{"statefulset"}, "change": []any{"Role"}}, "kinds: [statefulset]", []string{"--change", "Role"}},
		{"custom kind", map[string]any{"kinds": []any{"Pod"}, "change": []any{}, "extra": []any{map[string]any{"group": "cert-manager.io", "resource": "certificates"}}},
			"kinds: [Pod, Certificate.cert-manager.io]", nil},
		{"namespaces of the account", nil, "namespaces: [a, b]", []string{"--kinds", kinds, "--change", change}},
		{"namespaces of the account only", nil, "namespaces: [a], onlyNamespacedResources: true", []string{"--kinds", kinds, "--change", change}},
		{"all namespaces and nothing else", nil, "onlyNamespacedResources: true", []string{"--kinds", kinds, "--change", change}},
		{"a text that means true", nil, "namespaces: [a], onlyNamespacedResources: 'Yes'", []string{"--kinds", kinds, "--change", change}},
		{"cluster, too", map[string]any{"namespaces": []any{"a"}}, "namespaces: [a], onlyNamespacedResources: false", []string{"--kinds", kinds, "--change", change}},
		{"kinds of the account", nil, "kinds: [pod, Deployment.apps], metrics: 'off'", []string{"--change", change}},
		{"omitted kinds", nil, "omitKinds: [pod, Ingress.networking.k8s.io, Namespace]", []string{"--kinds", kinds, "--change", change}},
		{"a kind that is omitted and changed", map[string]any{"change": []any{"Pod"}}, "omitKinds: [pod]", []string{"--kinds", kinds, "--change", "Pod"}},
		{"custom kinds of the account", map[string]any{"change": []any{}, "extra": []any{map[string]any{"group": "cert-manager.io", "resource": "certificates"}}},
			"kinds: [Pod, Certificate.cert-manager.io]", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			rbac := test.values
			if rbac == nil {
				rbac = map[string]any{}
			}
			var settings map[string]any
			if err := yaml.Unmarshal([]byte("{"+test.account+"}"), &settings); err != nil {
				t.Fatal(err)
			}
			for key := range rbac {
				if key != "namespaces" || settings["onlyNamespacedResources"] == true {
					delete(settings, key)
				}
			}
			values := map[string]any{"agent": map[string]any{"account": map[string]any{"name": "prod", "settings": settings}, "rbac": rbac}}
			var manifest strings.Builder
			for path, text := range mustRender(t, c, values) {
				if strings.HasSuffix(path, "agent/rbac.yaml") {
					manifest.WriteString(text)
				}
			}
			got := rolesOf(t, manifest.String(), namespace+"-spin-armory-agent")
			file := filepath.Join(t.TempDir(), "agent.yml")
			content := fmt.Sprintf("kubernetes.accounts: [{name: prod, kubeconfigFile: %s, %s}]\n", kubeconfig, test.account)
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			printed, err := exec.CommandContext(t.Context(), filepath.Join(bin, "vedette-agent"),
				append([]string{"rbac", "--config", file}, test.flags...)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			want := rolesOf(t, string(printed), "vedette-prod")
			for _, scope := range keysOf(got, want) {
				for _, right := range keysOf(got[scope], want[scope]) {
					switch {
					case !got[scope][right]:
						t.Errorf("namespace %q: the chart does not allow %s, which the agent needs", scope, right)
					case !want[scope][right]:
						t.Errorf("namespace %q: the chart allows %s, which the agent does not need", scope, right)
					}
				}
			}
		})
	}
}

// keysOf returns the keys of two maps, sorted, each once.
func keysOf[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// TestKindsOfChart compares the table of kinds with what an API server serves.
func TestKindsOfChart(t *testing.T) {
	needCluster(t)
	text, err := os.ReadFile(dir + "/files/kinds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kinds map[string]struct {
		Group, Resource string
		Namespaced      bool
	}
	if err := yaml.Unmarshal(text, &kinds); err != nil {
		t.Fatal(err)
	}
	served, err := plane.Kubectl(t.Context(), "api-resources", "--no-headers")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(served)) {
		f := strings.Fields(line)
		kind, namespaced, version := f[len(f)-1], f[len(f)-2], f[len(f)-3]
		group, _, hasGroup := strings.Cut(version, "/")
		if !hasGroup {
			group = ""
		}
		found[fmt.Sprintf("%s: %s/%s %s", kind, group, f[0], namespaced)] = true
	}
	for kind, entry := range kinds {
		if line := fmt.Sprintf("%s: %s/%s %t", kind, entry.Group, entry.Resource, entry.Namespaced); !found[line] {
			t.Errorf("the API server does not serve %s", line)
		}
	}
}
