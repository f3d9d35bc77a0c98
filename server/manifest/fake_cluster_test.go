package manifest

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette"
)

// fakeCluster is a cluster in memory.
type fakeCluster []Manifest

// clusterScoped are the native kinds that are cluster-scoped. All others are namespaced.
var clusterScoped = []string{
	"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "StorageClass", "PersistentVolume",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService", "PodSecurityPolicy",
}

// Namespaced knows Kubernetes' kinds and those of live definitions.
func (c fakeCluster) Namespaced(_ context.Context, apiVersion, kind string) (bool, error) {
	k := KindOf(apiVersion, kind)
	if isNativeGroup(k.Group) {
		return !slices.Contains(clusterScoped, kind), nil
	}
	for _, m := range c {
		if m.Kind().Name == "CustomResourceDefinition" && nested(object(m), "spec", "names", "kind") == any(kind) && nested(object(m), "spec", "group") == any(k.Group) {
			return nested(object(m), "spec", "scope") == any("Namespaced"), nil
		}
	}
	return false, vedette.Errorf(vedette.NotFound, "the cluster does not serve %s", k)
}

func (c fakeCluster) Get(_ context.Context, apiVersion, kind, namespace, name string) (Manifest, error) {
	for _, m := range c {
		if m.Kind() == KindOf(apiVersion, kind) && m.Namespace() == namespace && m.Name() == name {
			return m.Clone(), nil
		}
	}
	return nil, vedette.Errorf(vedette.NotFound, "there is no %s %s/%s", kind, namespace, name)
}

// Version reuses the oldest version that was applied from the same manifest, ignoring
// metadata, or else returns the highest version plus one.
func (c fakeCluster) Version(_ context.Context, m Manifest) (vedette.Version, error) {
	v := vedette.Version{Number: 0}
	highest := -1
	for _, live := range c.versions(m) {
		n, err := strconv.Atoi(strings.TrimPrefix(live.Annotation("artifact.spinnaker.io/version"), "v"))
		if err != nil {
			continue
		}
		var applied Manifest
		if json.Unmarshal([]byte(live.Annotation("kubectl.kubernetes.io/last-applied-configuration")), &applied) == nil && !v.Exists && reflect.DeepEqual(withoutMetadata(applied), withoutMetadata(m)) {
			v.Number, v.Exists = n, true
		}
		if n > highest {
			highest, v.Latest = n, live.Name()
		}
	}
	if !v.Exists {
		v.Number = highest + 1
	}
	return v, nil
}

func (c fakeCluster) versions(m Manifest) []Manifest {
	var all []Manifest
	for _, live := range c {
		if live.Kind() == m.Kind() && live.Namespace() == m.Namespace() && live.Annotation("artifact.spinnaker.io/name") == m.Name() &&
			live.Annotation("artifact.spinnaker.io/type") == "kubernetes/"+KindName(m.Kind()) {
			all = append(all, live)
		}
	}
	slices.SortStableFunc(all, func(a, b Manifest) int {
		return cmp.Compare(stringField(a.metadata(), "creationTimestamp"), stringField(b.metadata(), "creationTimestamp"))
	})
	return all
}

func withoutMetadata(m Manifest) Manifest {
	m = m.Clone()
	delete(m, "metadata")
	return m
}

// readCluster reads a cluster from the YAML files in a directory, which may be missing.
func readCluster(t *testing.T, directory string) fakeCluster {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var c fakeCluster
	for _, file := range files {
		for document := range strings.SplitSeq(readFile(t, file), "\n---\n") {
			raw, err := yaml.YAMLToJSON([]byte(document))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			c = append(c, mustParse(t, string(raw)))
		}
	}
	return c
}

func readFile(t testing.TB, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
