package operations

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestManifestsThatOthersReadOtherwise parses manifests whose kind or name depends on who reads them, and YAML that
// becomes very much.
func TestManifestsThatOthersReadOtherwise(t *testing.T) {
	for name, document := range map[string]string{
		"a kind twice":          `{"kind":"ConfigMap","kind":"Secret","metadata":{"name":"a"}}`,
		"a name twice":          `{"kind":"ConfigMap","metadata":{"name":"a","name":"b"}}`,
		"a kind twice, in YAML": "kind: ConfigMap\nkind: Secret\nmetadata: {name: a}",
		"very many values":      "kind: ConfigMap\nx: [" + strings.Repeat("a,", 1<<20) + "]",
	} {
		if _, err := parseManifest([]byte(document)); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%s: got %v, want it to be rejected", name, err)
		}
	}
	aliases := "kind: ConfigMap\nx: &x " + strings.Repeat("x", 1<<18) + "\ny: [" + strings.Repeat("*x,", 90) + "]"
	if _, err := parseManifest([]byte(aliases)); vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "aliases") {
		t.Errorf("22 MiB of JSON in 256 KiB of YAML: got %v, want that it is rejected before", err)
	}
	m, err := parseManifest([]byte(`{"kind":"ConfigMap","Kind":"Secret","metadata":{"name":"a","Name":"b"},"Metadata":{"name":"c"}}`))
	if err != nil || m.Kind != "ConfigMap" || m.Metadata.Name != "a" {
		t.Errorf("got %+v, %v, want the members that API servers read", m, err)
	}
}
