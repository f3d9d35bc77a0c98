//go:build linux

package operate_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/operate/apply"
)

// TestKubectlApplyAfterTheAgent checks what docs/spinnaker.md says about going back: what a kubectl apply, with which Clouddriver deploys, does
// with ConfigMaps and Secrets that the agent has applied.
func TestKubectlApplyAfterTheAgent(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	const missing = "is missing the kubectl.kubernetes.io/last-applied-configuration annotation"
	kinds := []struct {
		name string // of the objects and of their kind
		make func(name string, keys ...string) object
	}{
		{"configmaps", func(name string, keys ...string) object { return configMap(name, keysObject("1", keys)) }},
		{"secrets", func(name string, keys ...string) object {
			return object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": name}, "data": keysObject("MQ==", keys)}
		}},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			step := func(name, what string, wantWarning bool, want ...string) {
				t.Helper()
				warned := strings.Contains(what, missing)
				if got := keysOf(b.live(core, kind.name, name)); warned != wantWarning || !slices.Equal(got, want) {
					t.Errorf("%s: got keys %q, warned %t, want %q, %t: %s", name, got, warned, want, wantWarning, what)
				}
			}
			b.apply("", kind.make("first", "kept", "dropped"))
			if dig(b.live(core, kind.name, "first"), "metadata", "annotations", apply.LastApplied) != nil {
				t.Error("the agent wrote the annotation")
			}
			step("first", b.kubectlApplyOne(kind.make("first", "kept", "later")), true, "dropped", "kept", "later")
			step("first", b.kubectlApplyOne(kind.make("first", "kept")), false, "dropped", "kept") // what the annotation has is removed

			b.apply("", kind.make("prepared", "kept", "dropped"))
			b.apply(vedette.StrategyClientSide, kind.make("prepared", "kept", "later"))
			step("prepared", "", false, "kept", "later")
			step("prepared", b.kubectlApplyOne(kind.make("prepared", "kept")), false, "kept")

			b.apply("", kind.make("replaced", "kept", "dropped"))
			file := b.writeManifest(kind.make("replaced", "kept"))
			b.kubectl("replace", "-f", file)
			step("replaced", "", false, "kept")

			b.apply("", kind.make("server-side", "kept", "dropped"))
			b.kubectl("apply", "--server-side", "-f", b.writeManifest(kind.make("server-side", "kept")))
			step("server-side", "", false, "kept")
		})
	}
	b.kubectlApplyOne(configMap("theirs", object{"kept": "1", "dropped": "1"}))
	b.apply("", configMap("theirs", object{"kept": "2", "later": "1"}))
	if out := b.kubectlApplyOne(configMap("theirs", object{"kept": "2"})); strings.Contains(out, missing) {
		t.Errorf("a ConfigMap that kubectl had applied before: got %s, want no warning", out)
	}
	if got := keysOf(b.live(core, "configmaps", "theirs")); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("a ConfigMap that kubectl had applied before: got keys %q, want only the one that is left", got)
	}
}

func keysObject(value string, keys []string) object {
	o := object{}
	for _, key := range keys {
		o[key] = value
	}
	return o
}

func keysOf(o object) []string {
	data, _ := o["data"].(object)
	return slices.Sorted(maps.Keys(data))
}

func (b *testbed) writeManifest(o object) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "one.json")
	must(b, os.WriteFile(file, encode(b, o), 0o600))
	return file
}

// kubectlApplyOne applies an object by kubectl, and returns its output with warnings.
func (b *testbed) kubectlApplyOne(o object) string {
	b.Helper()
	out, err := plane.KubectlCombinedOutput(b.Context(), "-n", b.namespace, "apply", "-f", b.writeManifest(o))
	must(b, err)
	return string(out)
}
