package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/strvals"
)

var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	setFlag   = regexp.MustCompile(`--set(?:-string)? ('[^']+'|\S+)`)
)

// TestLint lints the chart as "helm lint --strict" does: with its defaults, each case, and the values that pages have.
func TestLint(t *testing.T) {
	expectClean := func(name string, values map[string]any) {
		t.Helper()
		linter := action.NewLint()
		linter.Strict = true
		for _, err := range linter.Run([]string{dir}, values).Errors {
			t.Errorf("%s: %v", name, err)
		}
	}
	expectClean("defaults", nil)
	for _, test := range cases(t) {
		if testing.Short() { // they take a minute
			break
		}
		expectClean(strings.Join(leaves(test.Values, ""), ", "), test.Values)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		for _, values := range valuesOf(t, page) {
			expectClean(filepath.Base(page), values)
			found++
		}
	}
	if found < 10 {
		t.Errorf("the pages have %d sets of values", found)
	}
	operator, err := os.ReadFile("../../deploy/spinnaker-operator/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(operator, &values); err != nil {
		t.Fatal(err)
	}
	expectClean("Spinnaker Operator", values)
}

// valuesOf returns the values in a page's commands, and in its files of values, which begin with the key of a group of the chart and have no key that
// the chart does not have.
func valuesOf(t *testing.T, page string) (found []map[string]any) {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	c := load(t)
	for _, m := range commands.FindAllStringSubmatch(string(content), -1) {
		for command := range strings.SplitSeq(strings.ReplaceAll(m[1], "\\\n", " "), "\n") {
			if !strings.Contains(command, "deploy/helm/vedette") {
				continue
			}
			values := map[string]any{}
			for _, flag := range setFlag.FindAllStringSubmatch(command, -1) {
				if err := strvals.ParseInto(strings.Trim(flag[1], "'"), values); err != nil {
					t.Fatalf("%s: %s: %v", page, command, err)
				}
			}
			found = append(found, values)
		}
	}
	for _, m := range yamlBlock.FindAllStringSubmatch(string(content), -1) {
		var values map[string]any
		if yaml.Unmarshal([]byte(m[1]), &values) != nil || len(values) == 0 {
			continue
		}
		isOurs := true
		for name := range values {
			isOurs = isOurs && c.Values[name] != nil
		}
		if isOurs && values["agent"] != nil {
			found = append(found, values)
		}
	}
	return found
}
