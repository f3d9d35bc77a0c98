package operate

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
)

// TestCutManifestsAreNotApplied applies manifests that were read through the strict preset, in each notation that encoders
// use, to an agent without it.
func TestCutManifestsAreNotApplied(t *testing.T) {
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","annotations":{"vedette.io/redacted":"strict"}}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","annotations":{"vedette.io\/redacted":"strict"}}}`,
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  annotations: {\"vedette.io\\x2fredacted\": strict}\n",
	} {
		o := newFakeOperator(t, Config{}, func(http.ResponseWriter, *http.Request) { t.Errorf("%s: sent a request", text) })
		out := o.Execute(t.Context(), vedette.Operation{Args: vedette.ApplyArgs{Namespace: "n", Manifest: []byte(text)}})
		if out.State != vedette.Failed || out.Status != http.StatusBadRequest || !strings.Contains(out.Message, redact.MarkerAnnotation) {
			t.Errorf("%s: got %s %d %s", text, out.State, out.Status, out.Message)
		}
	}
}
