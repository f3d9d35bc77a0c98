package redact

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
)

// fileFields are the projected fields of all files.
var fileFields = []vedette.ProjectionField{
	{Name: "images", Path: "spec.containers.*.image"}, {Name: "ports", Path: "spec.containers.*.ports.*.containerPort"},
	{Name: "templateImages", Path: "spec.template.spec.containers.*.image"}, {Name: "env", Path: "spec.template.spec.containers.*.env.*.value"},
	{Name: "conditions", Path: "status.conditions.*.status"}, {Name: "phase", Path: "status.phase"}, {Name: "keys", Path: "data.#"},
	{Name: "password", Path: "data.password"}, {Name: "manifests", Path: "spec.manifests.*.data"}, {Name: "hosts", Path: "spec.rules.*.host"},
	{Name: "applied", Path: `metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration`},
	{Name: "app", Path: "metadata.labels.app"}, {Name: "fields", Path: "metadata.managedFields.#"},
}

// resourceOf returns the resource for the first word of a file name.
func resourceOf(t *testing.T, name string) vedette.Resource {
	word, _, _ := strings.Cut(name, "-")
	r, ok := map[string]vedette.Resource{
		"pod": pods, "secret": secrets, "configmap": configMaps, "deployment": deployments, "work": works,
		"cronjob":   {Kind: vedette.Kind{Group: "batch", Name: "CronJob"}, Version: "v1"},
		"namespace": {Kind: vedette.Kind{Name: "Namespace"}, Version: "v1"},
		"ingress":   {Kind: vedette.Kind{Group: "networking.k8s.io", Name: "Ingress"}, Version: "v1"},
	}[word]
	if !ok {
		t.Fatalf("no resource for %s", name)
	}
	if name == "secret-disguised" {
		return pods
	}
	return r
}

// TestFilesAreRedactedAsRecorded redacts each testdata/x.input.json, with rules if x ends in -rules, and
// compares the result with x.output.json. The flag -rewrite writes these files.
func TestFilesAreRedactedAsRecorded(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.input.json")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, input := range inputs {
		name := strings.TrimSuffix(filepath.Base(input), ".input.json")
		t.Run(name, func(t *testing.T) { checkFile(t, name, input) })
	}
}

func checkFile(t *testing.T, name, input string) {
	raw, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	ref := reference{resource: resourceOf(t, name)}
	if strings.HasSuffix(name, "-rules") {
		ref.config = someRules
	}
	o, dst, err := mustNew(t, ref.config, fileFields).Object(nil, ref.resource, raw)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(dst[:cap(dst)], []byte("aHVudGVyMg==")) != (name == "configmap") {
		t.Errorf("got the password in %s", dst[:cap(dst)])
	}
	if unique(raw) {
		ref.check(t, raw, o, nil)
	}
	got := formatObject(t, o)
	output := strings.Replace(input, ".input.", ".output.", 1)
	golden.Compare(t, output, string(got))
}

// formatObject formats an object with an indented body.
func formatObject(t *testing.T, o vedette.Object) []byte {
	t.Helper()
	body, summary := json.RawMessage(o.Body), json.RawMessage(o.Summary)
	o.Body, o.Summary = nil, nil
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(struct {
		Header        vedette.Object
		Summary, Body json.RawMessage
	}{o, summary, body}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
