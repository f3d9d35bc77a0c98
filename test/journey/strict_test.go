package journey

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
)

// strictCanary is in every place that the strict preset removes.
const strictCanary = "c4n4ry-strict-5e1f"

// podSpecWithCanaries is the spec of a pod that has the canary wherever a user may write a text.
func podSpecWithCanaries(restart string) map[string]any {
	return map[string]any{"restartPolicy": restart, "containers": []any{map[string]any{"name": "m", "image": "example.com/i:1",
		"command": []any{"/bin/" + strictCanary}, "args": []any{"--password=" + strictCanary}, "workingDir": "/" + strictCanary,
		"env":           []any{map[string]any{"name": "PASSWORD", "value": strictCanary}},
		"livenessProbe": map[string]any{"exec": map[string]any{"command": []any{strictCanary}}},
		"lifecycle":     map[string]any{"postStart": map[string]any{"exec": map[string]any{"command": []any{strictCanary}}}}}},
		"volumes":     []any{map[string]any{"name": "v", "hostPath": map[string]any{"path": "/" + strictCanary}}},
		"hostAliases": []any{map[string]any{"ip": "10.0.0.1", "hostnames": []any{strictCanary + ".example.com"}}}}
}

func templateWithCanaries(restart string) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "strict"}, "annotations": map[string]any{"example.com/key": strictCanary}},
		"spec": podSpecWithCanaries(restart)}
}

// TestStrictPresetLetsNoCanaryOut creates objects with canaries, and looks for them in everything that an agent with the strict preset
// sends: snapshots, changes, live reads, outcomes with what they changed, errors, the database and the logs.
func TestStrictPresetLetsNoCanaryOut(t *testing.T) {
	annotations := map[string]any{"example.com/key": strictCanary, "kubernetes.io/change-cause": "run --password=" + strictCanary, "moniker.spinnaker.io/application": "strict-shop"}
	create := func(path, kind, name string, fields map[string]any) {
		t.Helper()
		fields["kind"], fields["metadata"] = kind, map[string]any{"name": name, "annotations": annotations}
		if err := plane.Create(t.Context(), path, fields); err != nil {
			t.Fatal(err)
		}
	}
	create("/api/v1/namespaces/default/configmaps", "ConfigMap", "strict", map[string]any{"data": map[string]any{"k": strictCanary},
		"binaryData": map[string]any{"b": "YzRuNHJ5"}})
	create("/apis/apps/v1/namespaces/default/deployments", "Deployment", "strict", map[string]any{"apiVersion": "apps/v1",
		"spec": map[string]any{"replicas": 0, "selector": map[string]any{"matchLabels": map[string]any{"a": "strict"}}, "template": templateWithCanaries("Always")}})
	create("/apis/batch/v1/namespaces/default/jobs", "Job", "strict", map[string]any{"apiVersion": "batch/v1",
		"spec": map[string]any{"suspend": true, "template": templateWithCanaries("Never")}})
	create("/api/v1/namespaces/default/pods", "Pod", "strict", map[string]any{"spec": podSpecWithCanaries("Always")})
	create("/api/v1/namespaces/default/events", "Event", "strict", map[string]any{"reason": "Failed", "message": "run " + strictCanary, "type": "Warning",
		"involvedObject": map[string]any{"kind": "Pod", "namespace": "default", "name": "strict"}})
	create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "CustomResourceDefinition", "stricts.example.org", map[string]any{"apiVersion": "apiextensions.k8s.io/v1",
		"spec": map[string]any{"group": "example.org", "scope": "Namespaced", "names": map[string]any{"kind": "Strict", "plural": "stricts"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "description": strictCanary, "x-kubernetes-preserve-unknown-fields": true}}}}}})

	var tap messageTap
	kinds := []string{"ConfigMap", "Deployment", "ReplicaSet", "Job", "Pod", "CustomResourceDefinition"}
	h := startWithDialOptions(t, agent.Account{Name: "one", Selection: watch.Selection{Kinds: kinds}}, redact.Config{Preset: redact.PresetStrict},
		grpc.WithStreamInterceptor(tap.intercept))
	h.awaitLive(len(kinds))
	custom := "/apis/example.org/v1/namespaces/default/stricts"
	h.await("the custom kind to be served", func() bool {
		return plane.Create(t.Context(), custom, map[string]any{"apiVersion": "example.org/v1", "kind": "Strict",
			"metadata": map[string]any{"name": "strict"}, "spec": map[string]any{"password": strictCanary}, "status": map[string]any{"text": strictCanary}}) == nil
	})

	var read bytes.Buffer
	collect := func(what string, answer []byte, words ...string) {
		t.Helper()
		read.Write(answer)
		if bytes.Contains(answer, []byte(strictCanary)) {
			t.Errorf("%s: the answer has the canary: %s", what, answer)
		}
		for _, w := range words {
			if !bytes.Contains(answer, []byte(w)) {
				t.Errorf("%s: got %s, want %q in it", what, answer, w)
			}
		}
	}
	h.await("the ReplicaSet to be stored", func() bool {
		return bytes.Contains(h.read("/vedette/v1/objects?kind=replicasets&include=body"), []byte("example.com/i:1"))
	})
	for _, kind := range kinds {
		words := []string{"strict", redact.MarkerAnnotation}
		if kind == "ReplicaSet" {
			words = []string{"example.com/i:1", redact.MarkerAnnotation}
		}
		collect("list of "+kind, h.read("/vedette/v1/objects?include=body&kind="+strings.ToLower(kind)), words...)
	}
	operate := func(body string, words ...string) []byte {
		t.Helper()
		answer := h.post("/vedette/v1/operations", `{"account":"one","timeout":"1m",`+body+`}`)
		collect(body, answer, words...)
		return answer
	}
	target := func(kind string) string { return fmt.Sprintf(`"kind":%q,"namespace":"default","name":"strict"`, kind) }
	operate(`"verb":"get",`+target("deployment"), "example.com/i:1", "strict-shop", redact.MarkerAnnotation)
	operate(`"verb":"get",`+target("strict.example.org"), `"state":"done"`)
	operate(`"verb":"list","kind":"configmaps","namespace":"default"`, `"state":"done"`)
	operate(`"verb":"recache",`+target("deployment"), `"state":"done"`)
	operate(`"verb":"history",`+target("deployment"), `"revision":1`)
	h.await("the Pod to be scheduled", func() bool {
		return bytes.Contains(operate(`"verb":"events",`+target("pod"), `"state":"done"`), []byte(`"reason":"Scheduled"`))
	})
	operate(`"verb":"patch",` + target("job") + `,"patch":{"spec":{"template":{"spec":{"containers":[{"name":"m","image":"example.com/i:2"}]}}}}`)
	operate(`"verb":"patch","type":"json",`+target("deployment")+
		`,"patch":[{"op":"copy","from":"/spec/template/spec/containers/0/args/0","path":"/metadata/labels/shown"}]`, "could reveal a redacted value")
	operate(`"verb":"patch","type":"json",`+target("deployment")+
		`,"patch":[{"op":"test","path":"/spec/template/spec/containers/0/env/0/value","value":"guess"}]`, "could reveal a redacted value")
	scaled := operate(`"verb":"scale",`+target("deployment")+`,"replicas":1`, `"state":"done"`)
	patched := operate(`"verb":"patch",`+target("deployment")+`,"patch":{"spec":{"template":{"spec":{"containers":[{"name":"m","image":"example.com/i:3","args":["--new=c4n4ry"]}]}}}}`,
		`"state":"done"`, "example.com/i:3")
	for what, answer := range map[string][]byte{"scale": scaled, "patch": patched} {
		var out struct{ ID string }
		if err := json.Unmarshal(answer, &out); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"scale": `"path":"/spec/replicas","value":1`, "patch": `"value":"example.com/i:3"`}[what]
		collect("record of "+what, h.read("/vedette/v1/operations/"+out.ID), want, `"resourceVersionBefore"`)
	}
	collect("logs", h.post("/vedette/v1/operations", `{"account":"one","verb":"logs"}`))
	for _, body := range []string{string(h.read("/vedette/v1/objects/one/deployments/default/strict")), string(operate(`"verb":"get",` + target("deployment")))} {
		var view struct {
			Body    json.RawMessage
			Objects []json.RawMessage
		}
		if err := json.Unmarshal([]byte(body), &view); err != nil {
			t.Fatal(err)
		}
		manifest := view.Body
		if len(view.Objects) > 0 {
			manifest = view.Objects[0]
		}
		if len(manifest) > 0 {
			operate(`"verb":"apply","manifest":`+string(manifest), "redact.preset: strict", `"state":"failed"`)
		}
	}
	h.stopAgent()
	if sent := tap.decoded(t); bytes.Contains(sent, []byte(strictCanary)) || strings.Contains(tap.messages.String(), strictCanary) {
		t.Error("the agent sent the canary")
	}
	if strings.Contains(h.log.String(), strictCanary) {
		t.Error("the logs of the programs have the canary")
	}
	files, err := filepath.Glob(filepath.Join(h.dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no database files", err)
	}
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(strictCanary)) {
			t.Errorf("%s has the canary", filepath.Base(file))
		}
	}
}
