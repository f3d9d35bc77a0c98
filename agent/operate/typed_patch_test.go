//go:build linux

package operate_test

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// TestValuesOfTheWrongType checks what users read who forgot quotes.
func TestValuesOfTheWrongType(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	deployment := fullDeployment("d", "1")
	deployment["spec"].(object)["replicas"] = "two"
	for _, tt := range []struct {
		name     string
		manifest object
		want     string
	}{
		{"a number", configMap("c", object{"port": 8080}), `ConfigMap "c" is invalid: .data.port: expected string: quote the value`},
		{"several", configMap("c", object{"on": true, "list": []any{1}, "a: b": 3.5}),
			`ConfigMap "c" is invalid: .data.a: b: expected string: quote the value, .data.list: expected string: quote the value, .data.on: expected string: quote the value`},
		{"of a Secret", object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}, "stringData": object{"pin": 123456}},
			`Secret "s" is invalid: .stringData.pin: expected string: quote the value`},
		{"a text", deployment, `Deployment.apps "d" is invalid: .spec.replicas: expected numeric (int or float)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, tt.manifest), Namespace: b.namespace, Strategy: vedette.StrategyForceConflicts}, 400, tt.want)
			if out.Reason != "BadRequest" || strings.Contains(out.Message, "123456") {
				t.Errorf("got %s: %s", out.Reason, out.Message)
			}
		})
	}
}
