package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
)

// TestDeploymentsArePlannedAsRecorded plans each testdata/deploy/<case>/request.json, the description of a
// deployManifest, with the cluster in cluster/*.yaml and the rules in rules.json. It compares
// the steps with steps.yaml and the rest of the plan with result.json, or the error with
// error.txt.
func TestDeploymentsArePlannedAsRecorded(t *testing.T) {
	directories, err := filepath.Glob("testdata/deploy/*")
	if err != nil || len(directories) < 45 {
		t.Fatalf("got %d test cases, error %v", len(directories), err)
	}
	for _, directory := range directories {
		t.Run(filepath.Base(directory), func(t *testing.T) { testDeployment(t, directory) })
	}
}

func testDeployment(t *testing.T, directory string) {
	c := readCluster(t, filepath.Join(directory, "cluster"))
	plan, err := planTwice(t, directory, c)
	files := map[string]string{"steps.yaml": "", "result.json": "", "error.txt": ""}
	switch {
	case err == nil:
		files["steps.yaml"], files["result.json"] = stepsOf(t, plan), resultOf(t, plan)
	case vedette.KindOf(err) == vedette.Invalid:
		files["error.txt"] = err.Error() + "\n"
	default:
		t.Fatalf("got %v, want an error of the kind Invalid", err)
	}
	for name, got := range files {
		compare(t, filepath.Join(directory, name), got)
	}
}

// planTwice plans twice and compares, because a request can be repeated: planning must not
// change it.
func planTwice(t *testing.T, directory string, c fakeCluster) (Plan, error) {
	d, err := ParseDeployDescription([]byte(readFile(t, filepath.Join(directory, "request.json"))))
	if err != nil {
		return Plan{}, err
	}
	d.Rules = readRules(t, filepath.Join(directory, "rules.json"))
	plan, err := d.Plan(t.Context(), c)
	second, secondErr := d.Plan(t.Context(), c)
	if !reflect.DeepEqual(plan, second) || fmt.Sprint(err) != fmt.Sprint(secondErr) {
		t.Errorf("second plan: got\n%v, %v\nwant\n%v, %v", second, secondErr, plan, err)
	}
	return plan, err
}

func readRules(t *testing.T, file string) Rules {
	t.Helper()
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Rules{}
	}
	var config struct {
		SkipAppLabels   bool
		ManagedBySuffix string
		MatchNameOnly   bool
		CustomResources []vedette.CustomResource
	}
	if err := errors.Join(err, json.Unmarshal(raw, &config)); err != nil {
		t.Fatal(err)
	}
	rules := Rules{SkipAppLabels: config.SkipAppLabels, ManagedBySuffix: config.ManagedBySuffix, MatchNameOnly: config.MatchNameOnly}
	if config.CustomResources == nil {
		return rules
	}
	return rules.WithCustomKinds(config.CustomResources)
}

// stepsOf returns the steps of a plan as a YAML stream.
func stepsOf(t *testing.T, plan Plan) string {
	t.Helper()
	var b bytes.Buffer
	for i, s := range plan.Steps {
		if i > 0 {
			b.WriteString("---\n")
		}
		strategy := string(s.Strategy)
		switch {
		case !s.Selected:
			strategy = "not selected"
		case s.Strategy == vedette.StrategyDefault:
			strategy = "apply"
		}
		fmt.Fprintf(&b, "# %s: %s\n", strategy, s.FullName)
		raw, err := yaml.Marshal(s.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(raw)
		if s.Namespace != s.Manifest.Namespace() || s.Name != s.Manifest.Name() || s.Kind != s.Manifest.Kind() {
			t.Errorf("step %v %s/%s has another manifest: %s", s.Kind, s.Namespace, s.Name, raw)
		}
	}
	return b.String()
}

func resultOf(t *testing.T, plan Plan) string {
	t.Helper()
	raw, err := json.MarshalIndent(map[string]any{"order": plan.Order, "created": plan.Created, "bound": plan.Bound}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + "\n"
}

// compare compares a file with got. If got is empty, the file must not exist.
func compare(t *testing.T, file, got string) {
	t.Helper()
	if golden.Updates() {
		write(t, file, got)
		return
	}
	want, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", filepath.Base(file), got, want)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	var err error
	if content == "" {
		err = os.Remove(file)
	} else {
		err = os.WriteFile(file, []byte(content), 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}
