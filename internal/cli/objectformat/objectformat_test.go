package objectformat

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/vedette-io/vedette"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

const podList = `{"apiVersion":"v1","kind":"List","items":[
	{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"shop"},"spec":{"priority":9007199254740993}},
	{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b","namespace":"shop"},"spec":{}}]}`

// TestTemplatesPrintWhatTheySelect checks what each format with a template prints.
func TestTemplatesPrintWhatTheySelect(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"jsonpath", Options{Output: "jsonpath={.items[*].metadata.name}"}, "a b"},
		{"a range", Options{Output: `jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`}, "a\nb\n"},
		{"large numbers stay exact", Options{Output: "jsonpath={.items[0].spec.priority}"}, "9007199254740993"},
		{"a comparison of numbers", Options{Output: "jsonpath={.items[?(@.spec.priority>10)].metadata.name}"}, "a"},
		{"a missing key", Options{Output: "jsonpath={.items[*].spec.nodeName}"}, ""},
		{"jsonpath as JSON", Options{Output: "jsonpath-as-json={.items[*].metadata.name}"}, "[\n    \"a\",\n    \"b\"\n]\n"},
		{"jsonpath from a file", Options{Output: "jsonpath-file=" + file("p", "{.items[1].metadata.name}")}, "b"},
		{"go-template", Options{Output: "go-template={{range .items}}{{.metadata.name}},{{end}}"}, "a,b,"},
		{"the template as a flag", Options{Output: "go-template", Template: "{{len .items}}"}, "2"},
		{"only the template", Options{Template: "{{len .items}}"}, "2"},
		{"go-template from a file", Options{Output: "go-template-file=" + file("t", "{{.kind}}")}, "List"},
	} {
		f, err := Parse(tt.o)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var b bytes.Buffer
		if err := f.Print(&b, object(t, podList)); err != nil || b.String() != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.name, b.String(), err, tt.want)
		}
	}
}

func TestFormatErrorsHaveKubectlsWords(t *testing.T) {
	for output, want := range map[string]string{
		"xml":      `unable to match a printer suitable for the output format "xml", allowed formats are: custom-columns,`,
		"json=a":   `unable to match a printer suitable for the output format "json=a"`,
		"jsonpath": "template format specified but no template given", "go-template=": "template format specified but no template given",
		"jsonpath={.a":              "error parsing jsonpath {.a, unclosed action",
		"jsonpath={.a[}":            "unterminated array",
		"go-template={{.a":          "error parsing template {{.a, template: output:1: unclosed action",
		"jsonpath-file=/nonesuch":   "error reading --template /nonesuch, open /nonesuch: no such file or directory",
		"custom-columns":            "custom-columns format specified but no custom columns given",
		"custom-columns=NAME":       "unexpected custom-columns spec: NAME, expected <header>:<json-path-expr>",
		"custom-columns=A:{.a}{.b}": "unexpected path string, expected a 'name1.name2'",
		"custom-columns=A:.a[":      "unterminated array",
	} {
		_, err := Parse(Options{Output: output})
		if err == nil || !strings.Contains(err.Error(), want) || vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%s: got error %v, want %q", output, err, want)
		}
	}
}

// TestFailedTemplatesPrintNothing checks that a template that fails prints nothing, and that its error does not contain all objects.
func TestFailedTemplatesPrintNothing(t *testing.T) {
	large := object(t, podList)
	large["items"] = append(large["items"].([]any), map[string]any{"text": strings.Repeat("x", 1<<20)})
	for _, o := range []Options{
		{Output: "jsonpath={.items[0].metadata.name}{.nonesuch}", StrictKeys: true}, {Output: "jsonpath={.items[9].metadata}"},
		{Output: "go-template={{.kind}}{{.nonesuch.name.other}}", StrictKeys: true}, {Output: "go-template={{.kind}}{{index .items 9}}"},
	} {
		f, err := Parse(o)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		err = f.Print(&b, large)
		if err == nil || len(err.Error()) > 2*maxErrorBytes || !strings.Contains(err.Error(), "error executing") || b.Len() > 0 {
			t.Errorf("%s: got %d bytes of output, and an error of %d bytes, want a short error: %.200v", o.Output, b.Len(), len(err.Error()), err)
		}
	}
}

func TestCustomColumnsFollowTheirPaths(t *testing.T) {
	pod := object(t, `{"metadata":{"name":"a","labels":{"app.kubernetes.io/name":"web"}},"spec":{"containers":[{"image":"x"},{"image":"y"}]}}`)
	for spec, want := range map[string]string{
		"NAME:.metadata.name,IMAGES:{.spec.containers[*].image},NODE:spec.nodeName": "NAME IMAGES NODE|a x,y <none>",
		`APP:.metadata.labels.app\.kubernetes\.io/name`:                             "APP|web",
		"N:{metadata.name}": "N|a",
	} {
		c, err := ParseColumns(spec, false)
		if err != nil {
			t.Fatal(err)
		}
		row, err := c.Row(pod)
		if got := strings.Join(c.Header(), " ") + "|" + strings.Join(row, " "); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", spec, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "missing header line", "NAME": "missing spec line", "NAME\n": "missing spec line", "A B\n.a": "number of headers (2) and field specifications (1) don't match",
	} {
		if _, err := parseColumnsFile(text, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if c, err := parseColumnsFile("NAME\tAPP\r\nmetadata.name  .metadata.labels\r\n", false); err != nil || len(c.Header()) != 2 {
		t.Errorf("got %v, %v, want two columns", c, err)
	}
}

func TestObjectsAreSortedByTheirValues(t *testing.T) {
	for _, tt := range []struct{ name, path, values, want string }{
		{"numbers", ".v", `3 20 1.5`, "1.5 3 20"},
		{"texts", "v", `"b" "a" "c"`, "a b c"},
		{"quantities", "{.v}", `"1Gi" "900Mi" "2"`, "2 900Mi 1Gi"},
		{"missing ones first", "{v}", `2 null 1`, "<nil> 1 2"},
		{"large numbers", ".v", `9007199254740993 9007199254740992`, "9007199254740992 9007199254740993"},
		{"nothing has the field", ".w", `1`, `couldn't find any field with path "{.w}" in the list of objects`},
		{"a list", ".v", `[1]`, "Field {.v} in an object is an unsortable type"},
		{"texts and numbers", ".v", `1 "a"`, "a number in one object, and a text in another"},
		{"an invalid path", ".v[", `1`, "invalid --sort-by"},
		{"an invalid expression", "{a}{b}", `1`, "unexpected path string"},
	} {
		got, err := sortValues(t, tt.path, strings.Fields(tt.values))
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != tt.want || err != nil && !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func sortValues(t *testing.T, path string, values []string) (string, error) {
	s, err := NewSorter(path)
	if err != nil {
		return "", err
	}
	var keys []Key
	for _, v := range values {
		k, err := s.KeyOf(object(t, `{"v":`+v+`}`))
		if err != nil {
			return "", err
		}
		keys = append(keys, k)
	}
	err = Sort(s, keys, func(k Key) Key { return k })
	var texts []string
	for _, k := range keys {
		texts = append(texts, fmt.Sprint(k.value))
	}
	return strings.Join(texts, " "), err
}

func TestFieldSelectorsMatchCachedFields(t *testing.T) {
	pod := object(t, `{"metadata":{"name":"a","namespace":"shop"},"spec":{"nodeName":"n1"},"status":{"phase":"Running"}}`)
	kind := vedette.Kind{Name: "Pod"}
	for selector, want := range map[string]bool{
		"status.phase=Running": true, "status.phase!=Running": false, "status.phase==Running,spec.nodeName=n1": true, "metadata.name=b": false,
		"metadata.namespace=shop": true, "spec.hostNetwork=false": true, "spec.hostNetwork=true": false, "status.podIP=": true,
	} {
		s, err := ParseFieldSelector(selector)
		if err != nil || !s.IsCached(kind) || s.Matches(kind, pod) != want {
			t.Errorf("%s: got error %v, or not %t", selector, err, want)
		}
	}
	for selector, kind := range map[string]vedette.Kind{"spec.nonesuch=a": {Name: "Pod"}, "status.phase=a": {Name: "Foo", Group: "example.com"},
		"metadata.name=a,spec.x=b": {Name: "Foo"}, "type=Opaque": {Name: "Secret"}} {
		if s, err := ParseFieldSelector(selector); err != nil || s.IsCached(kind) {
			t.Errorf("%s of %s: got %v, want a selector that only the cluster can evaluate", selector, kind, err)
		}
	}
	for _, invalid := range []string{"a", "a>b", `a=b\c`} {
		if _, err := ParseFieldSelector(invalid); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%q: got %v, want an error of kind %s", invalid, err, vedette.Invalid)
		}
	}
}
