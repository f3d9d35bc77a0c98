package journey

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
)

// canaries are values in Secrets, by where they are. None is part of another, or of anything that
// may be shown.
var canaries = map[string]string{
	"in the data":                  "xQ7vN2kLzW9-data",
	"as kubectl applied it":        "rB4mT8pHcY1-applied",
	"in an annotation":             "gD6sJ3wFuK5-note",
	"in a recorded command":        "nV9zR1xMbE7-cause",
	"as an operation applies it":   "kP2yG5hQtS8-apply",
	"as an operation patches it":   "wC7jL4dXoA3-patch",
	"as an operation mistypes it":  "zU1fI6qBvN9-typo",
	"as a pipeline deploys it":     "mH8eO2rTyD4-deploy",
	"as a pipeline's patch has it": "bJ5aW3lPgX6-stage",
}

// encodedForms returns the forms in which to look for a canary: plain, base64, hexadecimal and
// reversed, and the halves of each.
func encodedForms(canary string) [][]byte {
	var all [][]byte
	for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary)), hex.EncodeToString([]byte(canary))} {
		backwards := []byte(form)
		slices.Reverse(backwards)
		for _, b := range [][]byte{[]byte(form), backwards} {
			all = append(all, b[:len(b)/2], b[len(b)/2:])
		}
	}
	return all
}

// wantNoCanaries looks for all canaries in an output.
func wantNoCanaries(t *testing.T, source string, output []byte) {
	t.Helper()
	for where, canary := range canaries {
		for _, form := range encodedForms(canary) {
			if i := bytes.Index(output, form); i >= 0 {
				t.Errorf("%s contains the canary %s: %q", source, where, output[max(0, i-150):min(len(output), i+60)])
				break
			}
		}
	}
}

// read returns the response for a path.
func (h *stack) read(path string) []byte {
	h.t.Helper()
	var answer json.RawMessage
	if !h.get(path, &answer) {
		h.t.Errorf("%s cannot be read", path)
	}
	return answer
}

// post sends JSON to the server and returns the response, successful or not.
func (h *stack) post(path, body string) []byte {
	h.t.Helper()
	resp, err := http.Post("http://"+h.srv.REST().String()+path, "application/json", strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer
}

// createCanarySecret creates a Secret with canaries in all places that may contain data.
func createCanarySecret(t *testing.T, name string) {
	t.Helper()
	err := plane.Create(t.Context(), "/api/v1/namespaces/default/secrets", map[string]any{"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"guarded": "yes"}, "annotations": map[string]any{
			"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"v1","kind":"Secret","stringData":{"a":"` + canaries["as kubectl applied it"] + `"}}`,
			"kubernetes.io/change-cause":                       "kubectl create secret generic " + name + " --from-literal=a=" + canaries["in a recorded command"] + " --record=true",
			"example.com/note":                                 canaries["in an annotation"],
			"moniker.spinnaker.io/application":                 "shop"}},
		"stringData": map[string]any{"password": canaries["in the data"]}})
	if err != nil {
		t.Fatal(err)
	}
}

// secretOperations returns operations of all verbs on a Secret, without account and ID.
func secretOperations(name string) []string {
	applied := `"apiVersion":"v1","kind":%q,"metadata":{"name":"` + name + `","namespace":"default","annotations":{"example.com/mine":"` + canaries["as an operation applies it"] + `"}},` +
		`"stringData":{"more":"` + canaries["as an operation applies it"] + `"}`
	var all []string
	for _, verb := range []string{"get", "history", "status", "events", "recache", "restart", "pause", "resume", "undo"} {
		all = append(all, fmt.Sprintf(`"verb":%q,"kind":"secret","namespace":"default","name":%q`, verb, name))
	}
	for _, kind := range []string{"Secret", "secrets"} {
		for _, strategy := range []string{"", "client-side", "server-side", "force-conflicts", "replace", "create", "recreate"} {
			all = append(all, fmt.Sprintf(`"verb":"apply","strategy":%q,"manifest":{`+applied+`}`, strategy, kind),
				fmt.Sprintf(`"verb":"apply","strategy":%q,"manifest":{`+applied+`,"stringdata":{"a":"`+canaries["as an operation mistypes it"]+`"},"data":{"b":"!`+canaries["as an operation mistypes it"]+`"}}`, strategy, kind))
		}
		all = append(all, fmt.Sprintf(`"verb":"version","manifest":{`+applied+`}`, kind))
	}
	patch := func(patchType, patch string) {
		all = append(all, fmt.Sprintf(`"verb":"patch","type":%q,"kind":"Secret","namespace":"default","name":%q,"patch":%s`, patchType, name, patch))
	}
	mine := canaries["as an operation patches it"]
	for _, from := range []string{"/data/password", "/dat\\u0061/password", "/data", "", "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration", "/metadata/annotations/example.com~1note"} {
		for _, op := range []string{"copy", "move"} {
			for _, to := range []string{"/metadata/annotations/moniker.spinnaker.io~1application", "/metadata/labels/x", "/metadata/finalizers/0", "/metadata/annotations"} {
				patch("json", fmt.Sprintf(`[{"op":%q,"from":"%s","path":%q}]`, op, from, to))
			}
		}
		patch("json", fmt.Sprintf(`[{"op":"test","path":"%s","value":%q}]`, from, mine))
	}
	patch("json", `[{"op":"add","path":"/data/x","value":{}}]`)
	patch("json", `[{"op":"add","path":"/data/x","value":"`+mine+`!"}]`)
	patch("json", `[{"op":"replace","path":"/metadata","value":"`+mine+`"}]`)
	patch("json", `[{"op":"add","path":"/stringData","value":{"x":"`+mine+`"}}]`)
	patch("merge", `{"stringData":{"y":"`+mine+`"},"metadata":{"annotations":{"example.com/mine":"`+mine+`"}}}`)
	patch("merge", `{"metadata":{"labels":[]},"stringData":{"y":"`+mine+`"}}`)
	patch("merge", `{"kind":"ConfigMap"}`)
	patch("merge", `{"data":{"y":"`+mine+`"}}`)
	patch("strategic", `{"stringData":{"z":"`+mine+`"}}`)
	patch("strategic", `{"data":{"$retainKeys":["x"],"y":"`+mine+`"}}`)
	patch("strategic", `{"immutable":"`+mine+`"}`)
	return append(all,
		`"verb":"list","kind":"secret","namespace":"default"`,
		`"verb":"list","kind":"secret","namespace":"default","fieldSelector":"data.password=`+mine+`"`,
		fmt.Sprintf(`"verb":"scale","kind":"secret","namespace":"default","name":%q,"replicas":1`, name),
		`"verb":"prune","kinds":["core/v1/Secret"],"namespaces":["default"],"labelSelector":"guarded=no"`,
		fmt.Sprintf(`"verb":"delete","kind":"secret","namespace":"default","name":%q`, name))
}

// TestOperationsDoNotLeakSecrets runs each verb on Secrets full of canaries, with and without dry
// run, against a real API server, and deploys and patches them by Spinnaker's tasks. Then it looks
// for canaries in all responses, everything that can be read, the log and the files of the
// database.
func TestOperationsDoNotLeakSecrets(t *testing.T) {
	h := start(t, agent.Account{Name: "one", Selection: watch.Selection{Kinds: []string{"Secret"}}}, redact.Config{})
	h.awaitLive(1)
	stateCounts := map[string]int{}
	for i, operation := range secretOperations("NAME") {
		name := fmt.Sprintf("guarded-%d", i)
		createCanarySecret(t, name)
		operation = strings.ReplaceAll(operation, "NAME", name)
		for _, dryRun := range []string{`,"dryRun":true`, ""} {
			answer := h.post("/vedette/v1/operations", `{"account":"one",`+operation+dryRun+`}`)
			wantNoCanaries(t, "the response to "+operation+dryRun, answer)
			var out struct{ State string }
			_ = json.Unmarshal(answer, &out) // operations that are rejected at once have no state
			stateCounts[out.State]++
		}
	}
	if stateCounts["done"] < 30 || stateCounts["failed"] < 30 {
		t.Errorf("got states %v", stateCounts)
	}
	h.deploySecrets()
	for _, path := range []string{"/vedette/v1/objects?kind=secrets&include=body&limit=500", "/vedette/v1/operations?limit=500", "/vedette/v1/accounts", "/vedette/v1/feeds",
		"/manifests/one/default/secret%20guarded-by-task"} {
		wantNoCanaries(t, path, h.read(path))
	}
	wantNoCanaries(t, "the log", []byte(h.log.String()))
	files, err := filepath.Glob(filepath.Join(h.dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no database files", err)
	}
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil {
			wantNoCanaries(t, filepath.Base(file), b)
		}
	}
}

// deploySecrets deploys and patches Secrets by Spinnaker's tasks, and waits until these have ended.
func (h *stack) deploySecrets() {
	createCanarySecret(h.t, "guarded-by-task")
	deployed, staged := canaries["as a pipeline deploys it"], canaries["as a pipeline's patch has it"]
	manifest := func(kind, more string) string {
		return `{"deployManifest":{"account":"one","moniker":{"app":"shop"},"manifests":[{"apiVersion":"v1","kind":"` + kind + `","metadata":{"name":"deployed","namespace":"default"},"stringData":{"a":"` + deployed + `"}` + more + `}]}}`
	}
	patch := func(strategy, record, body string) string {
		return `{"patchManifest":{"account":"one","manifestName":"secret guarded-by-task","location":"default","options":{"mergeStrategy":"` + strategy + `","record":"` + record + `"},"patchBody":` + body + `}}`
	}
	for _, operation := range []string{
		manifest("Secret", ""), manifest("secrets", ""), manifest("Secret", `,"data":{"b":"!`+deployed+`"}`), manifest("secrets", `,"stringdata":"`+deployed+`"`),
		patch("strategic", "true", `{"stringData":{"a":"`+staged+`"}}`), patch("merge", "true", `{"metadata":{"labels":[]},"stringData":{"a":"`+staged+`"}}`),
		patch("json", "true", `[{"op":"add","path":"/stringData","value":{"a":"`+staged+`"}}]`),
		patch("json", "true", `[{"op":"copy","from":"/data/password","path":"/metadata/annotations/moniker.spinnaker.io~1application"}]`),
		patch("json", "false", `{"op":"test","path":"/data/password","value":"`+staged+`"}`),
	} {
		var started struct{ ResourceURI string }
		answer := h.post("/kubernetes/ops", "["+operation+"]")
		if err := json.Unmarshal(answer, &started); err != nil || started.ResourceURI == "" {
			h.t.Fatalf("%s: %s", operation, answer)
		}
		var taskJSON json.RawMessage
		h.await("the end of "+operation, func() bool {
			var task struct{ Status struct{ Completed bool } }
			return h.get(started.ResourceURI, &taskJSON) && json.Unmarshal(taskJSON, &task) == nil && task.Status.Completed
		})
		wantNoCanaries(h.t, "the task of "+operation, taskJSON)
	}
}
