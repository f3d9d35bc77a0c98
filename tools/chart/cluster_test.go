package chart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette/test/controlplane"
	"go.yaml.in/yaml/v3"
)

const namespace = "spinnaker"

var (
	plane     *controlplane.Plane
	startOnce = sync.OnceValue(start)
)

func TestMain(m *testing.M) {
	code := m.Run()
	if plane != nil {
		if err := plane.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// start starts an API server with the kinds that the chart may use besides those of Kubernetes.
func start() (err error) {
	ctx := context.Background()
	if plane, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return err
	}
	for _, o := range []controlplane.Object{
		customKind("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors"),
		customKind("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"),
		customKind("cert-manager.io", "v1", "Certificate", "certificates"),
		customKind("cert-manager.io", "v1", "Issuer", "issuers"),
	} {
		if err := plane.Create(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", o); err != nil {
			return err
		}
	}
	for _, name := range []string{namespace, "vedette", "a", "b"} {
		err := plane.Create(ctx, "/api/v1/namespaces", controlplane.Object{"metadata": controlplane.Object{"name": name}})
		if err != nil {
			return err
		}
	}
	return plane.Create(ctx, "/api/v1/namespaces/"+namespace+"/serviceaccounts",
		controlplane.Object{"metadata": controlplane.Object{"name": "spin-armory-agent"}})
}

// customKind returns the definition of a kind of another product, with any content.
func customKind(group, version, kind, plural string) controlplane.Object {
	return controlplane.Object{"metadata": controlplane.Object{"name": plural + "." + group}, "spec": controlplane.Object{
		"group": group, "scope": "Namespaced",
		"names": controlplane.Object{"kind": kind, "plural": plural, "singular": strings.ToLower(kind), "listKind": kind + "List"},
		"versions": []controlplane.Object{{"name": version, "served": true, "storage": true, "schema": controlplane.Object{
			"openAPIV3Schema": controlplane.Object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}}
}

func needCluster(t *testing.T) {
	t.Helper()
	notInShort(t)
	if err := startOnce(); err != nil {
		t.Fatal(err)
	}
}

// notInShort leaves out what takes minutes from "make test"; "make chart" runs it.
func notInShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes minutes")
	}
}

// merge returns values with those of more in them.
func merge(values, more map[string]any) map[string]any {
	merged := maps.Clone(values)
	for key, v := range more {
		below, ok := v.(map[string]any)
		if known, isMap := merged[key].(map[string]any); ok && isMap {
			v = merge(known, below)
		}
		merged[key] = v
	}
	return merged
}

// combinations is how many sets of values are rendered and shown to an API server.
const combinations = 200

// TestClusterAcceptsManifests renders the chart with each case, and with random pairs and triples of them, and lets an API server
// accept all objects, without unknown fields (kubectl apply --dry-run=server --validate=strict).
func TestClusterAcceptsManifests(t *testing.T) {
	needCluster(t)
	c := load(t)
	list := cases(t)
	random := rand.New(rand.NewPCG(1, 2))
	out := t.TempDir()
	for i := range combinations {
		values := set("agent.account.name", "prod")
		if i < len(list) {
			values = merge(values, list[i].Values)
		} else {
			for range 2 + random.IntN(2) {
				values = merge(values, list[random.IntN(len(list))].Values)
			}
		}
		rendered, err := render(c, "vedette", namespace, values)
		if err != nil {
			if strings.Contains(err.Error(), "the chart does not know") || strings.Contains(err.Error(), "have no volume") {
				continue
			}
			t.Fatalf("%v: %v", values, err)
		}
		var manifest strings.Builder
		fmt.Fprintf(&manifest, "# %v\n", values)
		for _, path := range slices.Sorted(maps.Keys(rendered)) {
			if strings.HasSuffix(path, ".yaml") {
				fmt.Fprintf(&manifest, "---\n%s\n", rendered[path])
			}
		}
		if err := os.WriteFile(filepath.Join(out, fmt.Sprintf("%03d.yaml", i)), []byte(manifest.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	result, err := plane.KubectlCombinedOutput(t.Context(), "apply", "--dry-run=server", "--validate=strict", "-f", out)
	if err != nil {
		var failed []string
		for line := range strings.Lines(string(result)) {
			if !strings.Contains(line, "(server dry run)") && !strings.HasPrefix(line, "Warning:") && !slices.Contains(failed, line) {
				failed = append(failed, line)
			}
		}
		t.Fatalf("kubectl apply failed:\n%s", strings.Join(failed, ""))
	}
	for line := range strings.Lines(string(result)) {
		if strings.HasPrefix(line, "Warning:") && !strings.Contains(line, "last-applied-configuration") {
			t.Errorf("an API server warns: %s", line)
		}
	}
}

// A policyRule is one of a Role.
type policyRule struct {
	APIGroups     []string `yaml:"apiGroups"`
	Resources     []string
	ResourceNames []string `yaml:"resourceNames"`
	Verbs         []string
}

// rights returns what rules allow, one right per element.
func rights(rules []policyRule) map[string]bool {
	found := map[string]bool{}
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					found[fmt.Sprintf("%s %s.%s %v", verb, resource, group, r.ResourceNames)] = true
				}
			}
		}
	}
	return found
}

// rolesOf returns what the roles with a name allow, by namespace; empty for the whole cluster.
func rolesOf(t *testing.T, manifest, prefix string) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{}
	for decoder := yaml.NewDecoder(strings.NewReader(manifest)); ; {
		var role struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Rules    []policyRule
		}
		if err := decoder.Decode(&role); err != nil {
			if errors.Is(err, io.EOF) {
				return found
			}
			t.Fatalf("%v\n%s", err, manifest)
		}
		if (role.Kind == "Role" || role.Kind == "ClusterRole") && strings.HasPrefix(role.Metadata.Name, prefix) {
			if found[role.Metadata.Namespace] == nil {
				found[role.Metadata.Namespace] = map[string]bool{}
			}
			maps.Copy(found[role.Metadata.Namespace], rights(role.Rules))
		}
	}
}
