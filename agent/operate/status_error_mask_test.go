//go:build linux

package operate_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/agent/redact"
)

// TestErrorsDoNotQuoteSecrets sends patches whose result is an invalid Secret. If the result cannot be
// decoded, API servers quote all of it.
func TestErrorsDoNotQuoteSecrets(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createCanarySecret("s")
	for _, args := range []vedette.PatchArgs{
		b.secretPatch("s", vedette.JSONPatch, `[{"op":"add","path":"/data/x","value":{}}]`),
		b.secretPatch("s", vedette.JSONPatch, `[{"op":"add","path":"/data/x","value":"not base64"}]`),
		b.secretPatch("s", vedette.JSONPatch, `[{"op":"replace","path":"/kind","value":"ConfigMap"}]`),
		b.secretPatch("s", vedette.JSONPatch, `[{"op":"replace","path":"/metadata/labels","value":7}]`),
		b.secretPatch("s", vedette.JSONPatch, `[{"op":"add","path":"/data/password/x","value":"a"}]`),
		b.secretPatch("s", vedette.JSONPatch, `[{"op":"remove","path":"/data/none"}]`),
		b.secretPatch("s", vedette.MergePatch, `{"metadata":{"labels":[]}}`),
		b.secretPatch("s", vedette.MergePatch, `{"data":{"x":5}}`),
		b.secretPatch("s", vedette.MergePatch, `{"kind":"ConfigMap"}`),
		b.secretPatch("s", vedette.StrategicPatch, `{"data":{"x":{"y":"z"}}}`),
		b.secretPatch("s", vedette.StrategicPatch, `{"data":{"$retainKeys":["x"],"y":"eQ=="}}`),
		b.secretPatch("s", vedette.StrategicPatch, `{"$setElementOrder/data":["x"],"data":["password"]}`),
		b.secretPatch("s", vedette.StrategicPatch, `{"metadata":{"labels":{"a":"not a label!"}},"immutable":"maybe"}`),
	} {
		for _, out := range []vedette.Outcome{b.dryRun(args), b.execute(args)} {
			if out.State != vedette.Failed || out.Message == "" {
				t.Errorf("%s: got %s %d %s", args.Patch, out.State, out.Status, out.Message)
			}
			b.wantNoneOf(string(args.Patch), encode(t, out), canaryInData, canaryInLastApplied, canaryInAnnotation)
		}
	}
	out := b.execute(b.secretPatch("s", vedette.MergePatch, `{"metadata":{"labels":{"a":"not a label!"}}}`))
	if !strings.Contains(out.Message, `Secret "s" is invalid: metadata.labels: Invalid value: a valid label must be`) {
		t.Errorf("the message has no reason: got %s", out.Message)
	}
}

// TestSecretErrorsAreUseful checks that a masked message still has the reason.
func TestSecretErrorsAreUseful(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createCanarySecret("s")
	b.mustExecute(b.secretPatch("s", vedette.MergePatch, `{"immutable":true}`))
	b.wantFailure(b.secretPatch("s", vedette.MergePatch, `{"stringData":{"password":"other"}}`), 422, "Secret \"s\" is invalid: data: Forbidden: field is immutable when `immutable` is set")
	b.wantFailure(b.secretPatch("s", vedette.MergePatch, `{"type":"other"}`), 422, `Secret "s" is invalid: type: Invalid value: field is immutable`)
	secret := func(name string, data object) vedette.ApplyArgs {
		return vedette.ApplyArgs{Namespace: b.namespace, Strategy: vedette.StrategyServerSide,
			Manifest: encode(t, object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": name}, "data": data})}
	}
	created := secret("u", object{"a key": "b3RoZXI="})
	created.Strategy = vedette.StrategyCreateOnly
	b.wantFailure(created, 422, `Secret "u" is invalid: data[a key]`)
	b.wantFailure(secret("s", object{canaryKey: "b3RoZXI="}), 409, "Apply failed with 1 conflict", ".data.password")
	b.wantFailure(secret("t", object{"a key": "b3RoZXI="}), 422, `Secret "t" is invalid: data[a key]: Invalid value: a valid config key must consist of alphanumeric characters`)
	b.wantFailure(secret("t", object{"a": "not base64"}), 500, "illegal base64 data at input byte 3")
}

// TestErrorsDoNotQuoteRedactedValues does the same for other kinds of which rules redact values.
func TestErrorsDoNotQuoteRedactedValues(t *testing.T) {
	r, err := redact.New(redact.Config{ConfigMapKeys: []string{"*.key"}}, nil, nil)
	must(t, err)
	b := newTestbed(t, operate.Config{Requests: request.Config{Redactor: r}})
	must(t, plane.Create(t.Context(), b.path(core, "configmaps", ""), configMap("c", object{"tls.key": canaryInData})))
	for _, patch := range []string{`{"data":{"x":{}}}`, `{"metadata":{"labels":[]}}`} {
		out := b.wantFailure(vedette.PatchArgs{Target: b.target("cm", "c"), Type: vedette.MergePatch, Patch: []byte(patch)}, 422,
			`ConfigMap "c" is invalid: patch: Invalid value: json: cannot unmarshal`)
		b.wantNoneOf(patch, encode(t, out), canaryInData)
	}
}

// TestErrorsNameFieldsOfPatches checks that an error names the field that cannot be decoded, of every type of patch, and quotes neither
// the patch nor the live object, of which rules redact values.
func TestErrorsNameFieldsOfPatches(t *testing.T) {
	const manyInPatch = "qqxzjvkw-qqxz"
	r, err := redact.New(redact.Config{Environment: []string{"*PASSWORD*"}}, nil, nil)
	must(t, err)
	b := newTestbed(t, operate.Config{Requests: request.Config{Redactor: r}})
	deployment := fullDeployment("d", "1")
	container := deployment["spec"].(object)["template"].(object)["spec"].(object)["containers"].([]any)[0].(object)
	container["env"] = []any{object{"name": "DB_PASSWORD", "value": canaryInData}}
	name := container["name"].(string)
	must(t, plane.Create(t.Context(), b.path(apps, "deployments", ""), deployment))
	inContainer := func(fields object) object {
		fields["name"] = name
		return object{"spec": object{"template": object{"spec": object{"containers": []any{fields}}}}}
	}
	for _, tt := range []struct {
		name      string
		patchType vedette.PatchType
		patch     any
		status    int
		want      string
	}{
		{"a number that is a text", vedette.StrategicPatch, object{"spec": object{"replicas": manyInPatch}}, 422, "into Go struct field DeploymentSpec.spec.replicas of type int32"},
		{"among others", vedette.StrategicPatch, object{"metadata": object{"labels": object{"a": "b"}}, "spec": object{"paused": "true", "minReadySeconds": 5}}, 422, "DeploymentSpec.spec.paused of type bool"},
		{"in a list that is merged", vedette.StrategicPatch, inContainer(object{"ports": []any{object{"containerPort": "http"}}}), 422, "spec.template.spec.containers.ports.containerPort of type int32"},
		{"a text that is a number, redacted", vedette.StrategicPatch, inContainer(object{"env": []any{object{"name": "DB_PASSWORD", "value": 7311009}}}), 422, "spec.template.spec.containers.env.value of type string"},
		{"a list in place of labels", vedette.StrategicPatch, object{"metadata": object{"labels": []any{}}}, 422, "ObjectMeta.metadata.labels of type map[string]string"},
		{"with a directive", vedette.StrategicPatch, object{"spec": object{"$retainKeys": []any{"replicas"}, "replicas": true}}, 422, "DeploymentSpec.spec.replicas of type int32"},
		{"a text or number", vedette.StrategicPatch, object{"spec": object{"strategy": object{"rollingUpdate": object{"maxSurge": true}}}}, 422, "spec.strategy.rollingUpdate.maxSurge of type int32"},
		{"a quantity, which has a form", vedette.StrategicPatch, inContainer(object{"resources": object{"limits": object{"cpu": "one"}}}), 422,
			"(the patch has spec.template.spec.containers[0].name, spec.template.spec.containers[0].resources.limits.cpu)"},
		{"a quantity of a JSON merge patch", vedette.MergePatch, object{"spec": object{"template": object{"spec": object{"overhead": object{"cpu": "one"}}}}}, 422,
			"(the patch has spec.template.spec.overhead.cpu)"},
		{"a quantity of a JSON patch", vedette.JSONPatch, []any{object{"op": "add", "path": "/spec/template/spec/overhead", "value": object{"cpu": "one"}}}, 422,
			"(the patch has /spec/template/spec/overhead)"},
		{"a number of a JSON merge patch", vedette.MergePatch, object{"spec": object{"replicas": manyInPatch}}, 422, "DeploymentSpec.spec.replicas of type int32"},
		{"a number of a JSON patch", vedette.JSONPatch, []any{object{"op": "replace", "path": "/spec/replicas", "value": manyInPatch}}, 422, "DeploymentSpec.spec.replicas of type int32"},
		{"elements that do not fit", vedette.StrategicPatch, object{"spec": object{"template": object{"spec": object{"containers": []any{5}}}}}, 500, "list element types are not identical: …"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := vedette.PatchArgs{Target: b.target("deployment", "d"), Type: tt.patchType, Patch: encode(t, tt.patch)}
			before := specOf(t, b.mustExecute(vedette.GetArgs{Target: b.target("deployment", "d")}))
			for _, out := range []vedette.Outcome{b.dryRun(args), b.execute(args)} {
				if out.State != vedette.Failed || out.Status != tt.status || !strings.Contains(out.Message, tt.want) {
					t.Errorf("got %s %d %s, want %d and %q", out.State, out.Status, out.Message, tt.status, tt.want)
				}
				b.wantNoneOf(tt.name, encode(t, out), canaryInData, manyInPatch, "7311009")
			}
			if after := specOf(t, b.mustExecute(vedette.GetArgs{Target: b.target("deployment", "d")})); after != before {
				t.Errorf("got %s, want the object as it was: %s", after, before)
			}
		})
	}
	live := fullDeployment("d", "1")
	live["spec"].(object)["replicas"] = manyInPatch
	b.mustExecute(vedette.ApplyArgs{Manifest: encode(t, fullDeployment("d", "1")), Namespace: b.namespace, Strategy: vedette.StrategyClientSide})
	b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, live), Namespace: b.namespace, Strategy: vedette.StrategyClientSide}, 422, "DeploymentSpec.spec.replicas of type int32")
}

// specOf returns the spec of the object in an outcome.
func specOf(t *testing.T, out vedette.Outcome) string {
	var o struct{ Spec json.RawMessage }
	must(t, json.Unmarshal(out.Objects[0], &o))
	return string(o.Spec)
}

// TestErrorsOfOlderAPIServersAreMasked checks that messages of older API servers, and of proxies, are
// not shown if they quote data.
func TestErrorsOfOlderAPIServersAreMasked(t *testing.T) {
	status := func(message, causes string) string {
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":` + string(encode(t, message)) +
			`,"details":{"causes":[` + causes + `]}}`
	}
	document := `{"apiVersion":"v1","data":{"password":"` + canaryInData + `"}}`
	for _, tt := range []struct{ name, answer, want string }{
		{"jsoniter", status("x", `{"reason":"FieldValueInvalid","field":"patch","message":`+
			string(encode(t, `Invalid value: "{}": v1.Secret.Data: readObjectStart: expect { or n, but found ", error found in #10 byte of ...|assword":"`+canaryInData))+`}`),
			`Secret "s" is invalid: patch: Invalid value`},
		{"a value that is no string", status("x", `{"reason":"FieldValueInvalid","field":"data","message":`+string(encode(t, `Invalid value: `+document+`: bad`))+`}`),
			`Secret "s" is invalid: data: Invalid value`},
		{"without causes", status(`Secret "s" is invalid: `+document, ""), "its message is not shown, because it quotes Secret"},
		{"as Go prints", status(`bad: map[data:map[password:`+canaryInData+`]]`, ""), "its message is not shown"},
		{"escaped", status(string(encode(t, document)), ""), "its message is not shown"},
		{"laid out", "{\n  \"data\" : {\n \"password\": \"" + canaryInData + "\"}}", "its message is not shown"},
		{"as YAML", "kind: Secret\ndata:\n  password: " + canaryInData, "its message is not shown"},
		{"as YAML within JSON", status("bad:\n"+`"data:\\n  password: `+canaryInData+`"`, ""), "its message is not shown"},
		{"a struct", status(`&Secret{Data:map[string][]uint8{"p": `+canaryInData+`}}`, ""), "its message is not shown"},
		{"no Status", document, "its message is not shown"},
		{"several", status("x", `{"reason":"FieldValueRequired","field":"data[a]","message":"Required value: say it"},{"reason":"FieldValueNotSupported","field":"type","message":`+
			string(encode(t, `Unsupported value: "`+canaryInData+`": supported values: "A", "B"`))+`}`),
			`Secret "s" is invalid: data[a]: Required value: say it, type: Unsupported value: supported values: "A", "B"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if r.Method != http.MethodPatch {
					return false
				}
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = w.Write([]byte(tt.answer))
				return true
			})
			out := b.wantFailure(b.secretPatch("s", vedette.MergePatch, `{"type":"x"}`), 422, tt.want)
			b.wantNoneOf(tt.name, encode(t, out), canaryInData)
		})
	}
}

// TestErrorsDoNotQuoteEmbeddedSecrets has the API server reject an object because of a value in a Secret
// that it embeds.
func TestErrorsDoNotQuoteEmbeddedSecrets(t *testing.T) {
	work := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "w"},
		"spec": object{"manifests": []any{object{"kind": "Secret", "data": object{"password": canaryInData}}}, "ref": object{"kind": "Secret", "name": "open-name"}}}
	b := newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !isWrite(r) {
			return false
		}
		w.Header().Set("Warning", `299 - "it is `+canaryInData+`"`)
		writeStatus(w, http.StatusUnprocessableEntity, "Invalid", `spec.manifests[0].data.password: Invalid value: "`+canaryInData+`" of open-name`)
		return true
	})
	for _, args := range []vedette.Args{
		vedette.ApplyArgs{Manifest: encode(t, work), Namespace: b.namespace, Strategy: vedette.StrategyCreateOnly},
		vedette.PatchArgs{Target: b.target("cm", "w"), Type: vedette.MergePatch, Patch: encode(t, object{"spec": work["spec"]})},
		vedette.PatchArgs{Target: b.target("cm", "w"), Type: vedette.JSONPatch, Patch: encode(t, []any{object{"op": "add", "path": "/spec", "value": work["spec"]}})},
	} {
		out := b.wantFailure(args, 422, `spec.manifests[0].data.password: Invalid value: "***" of open-name`)
		b.wantNoneOf(string(args.Verb()), encode(t, out), canaryInData)
	}
}

// TestWarningsDoNotQuoteSecrets has the API server quote a complete Secret in a warning, whose values the
// operation does not know.
func TestWarningsDoNotQuoteSecrets(t *testing.T) {
	b := newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if strings.Contains(r.URL.Path, "/secrets") {
			w.Header().Add("Warning", `299 - "it was {\"kind\":\"Secret\",\"data\":{\"a\":\"`+canaryInData+`\"}}"`)
			w.Header().Add("Warning", `299 - "of no data: it is old"`)
		}
		return false
	})
	b.createCanarySecret("s")
	for _, args := range []vedette.Args{
		vedette.GetArgs{Target: b.target("secret", "s")}, vedette.ListArgs{Target: b.target("secret", "")},
		b.secretPatch("s", vedette.MergePatch, `{"stringData":{"a":"other"}}`), vedette.DeleteArgs{Target: b.target("secret", "s")},
	} {
		out := b.mustExecute(args)
		b.wantWarnings(out, "a warning is not shown, because it quotes a Secret", "of no data: it is old")
		b.wantNoneOf(string(args.Verb()), encode(t, out), canaryInData)
	}
}
