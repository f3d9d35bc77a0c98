package configfile

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// unrelatedOptions are those of a program that has another one beside it.
func unrelatedOptions() Options {
	o := sampleOptions
	o.Program, o.Reference = "prog", "docs/prog.md"
	o.Other = OtherProgram{Name: "other", Keys: []string{"widgets", "future", "gadgets"}, Shared: []string{"server", "spring"}}
	return o
}

const sampleText = "labels: {a: b}\nserver: {port: 1}\n"

// TestUnrelatedFilesAreRecognized reads files that are no configurations.
func TestUnrelatedFilesAreRecognized(t *testing.T) {
	indented := strings.ReplaceAll(strings.TrimSuffix(sampleText, "\n"), "\n", "\n    ")
	for _, tt := range []struct {
		name, file string
		want       string // in the only problem; empty if there is none
	}{
		{"nothing", "", ""},
		{"comments", "# nothing yet\n---\n", ""},
		{"our own", sampleText, ""},
		{"a key of ours beside others", "apiVersion: v1\nkind: ConfigMap\nname: x", ""},
		{"a key that is renamed", "old: {graceMs: 5}", ""},
		{"a key of another product that is known", "spring.application.name: x", ""},
		{"a misspelt key", "sever: {port: 1}", `unknown key "sever": did you mean "server"?`},
		{"a ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: n}\ndata:\n  other.properties: a=b\n  prog.yaml: |\n    " + indented,
			`a.yml:1:1: this is not a configuration of prog: none of its keys (apiVersion, kind, metadata, data) is known. It seems to be a Kubernetes object, ConfigMap n/c. ` +
				`The configuration is in it at data["prog.yaml"] (line 6): save that part as a file of its own; a volume of a ConfigMap or Secret has a file for each key of its data`},
		{"a ConfigMap with a file that is called like a group", "apiVersion: v1\nkind: ConfigMap\ndata: {server.yaml: 'x: 1'}", "It seems to be a Kubernetes object, ConfigMap: apply"},
		{"a ConfigMap of the other program", "apiVersion: v1\nkind: ConfigMap\ndata: {x.yaml: '{server: {port: 1}, gadgets: {}}'}",
			`It seems to be a Kubernetes object, ConfigMap. What is in it at data["x.yaml"] (line 3) seems to be the configuration of other, not of prog: name another file with --config`},
		{"a Secret of the other program", "apiVersion: v1\nkind: Secret\ndata: {x: " + base64.StdEncoding.EncodeToString([]byte("gadgets.a: 1")) + "}", `What is in it at data.x in base64 (line 3) seems to be`},
		{"a ConfigMap of both programs", "apiVersion: v1\nkind: ConfigMap\ndata: {y.yaml: 'gadgets: {}', x.yaml: 'labels: {a: b}'}", `The configuration is in it at data["x.yaml"] (line 3): save`},
		{"keys of both beside a file of the other program", "apiVersion: v1\nkind: ConfigMap\ndata: {x.yaml: 'server: {port: 1}', y.yaml: 'gadgets: {}'}", `What is in it at data["y.yaml"] (line 3) seems`},
		{"a ConfigMap with a text that begins like one of the other program", "apiVersion: v1\nkind: ConfigMap\ndata: {x.yaml: 'gadgets: {}\nname: x'}", "It seems to be a Kubernetes object, ConfigMap: apply"},
		{"a Secret", "apiVersion: v1\nkind: Secret\ndata: {x: " + base64.StdEncoding.EncodeToString([]byte(sampleText)) + "}", `at data.x in base64 (line 3)`},
		{"an object with the settings in a group", "apiVersion: spinnaker.io/v1alpha2\nkind: SpinnakerService\nmetadata: {name: spinnaker}\nspec: {spinnakerConfig: {profiles: {prog: {server: {port: 1}, entries: [{name: x}]}, x: {server: {port: 2}}}}}",
			`It seems to be a Kubernetes object, SpinnakerService spinnaker. The configuration is in it at spec.spinnakerConfig.profiles.prog (line 4): save`},
		{"a list", "apiVersion: v1\nkind: List\nitems:\n- {kind: Pod}\n- kind: ConfigMap\n  data:\n    a: |\n      " + strings.ReplaceAll(indented, "    ", "      "), `at items[1].data.a (line 7)`},
		{"the best of several places", "a: {x: {server.port: 1}}\nb: {x: {server: {}}}\nc: {x: {server: {port: 1}, spring: {}}}\nd: {x: {server: 7}}",
			`none of its keys (a, b, c, d) is known. The configuration is in it at c.x (line 3): save`},
		{"several places", "a: {labels: {x: y}}\nb: {labels.x: y}\nc: {labels: {x: y}}\nd: {labels: {x: y}}", `at a (line 1) and at b (line 2) and at c (line 3): save`},
		{"a Deployment", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: \"w\\x1b[2J\"}\nspec: {template: {spec: {containers: [{env: [{value: 'server: 1'}]}]}}}",
			`It seems to be a Kubernetes object, Deployment "w\x1b[2J": apply it with kubectl`},
		{"several manifests", "apiVersion: v1\nkind: Namespace\n---\napiVersion: v1\nkind: Service", "It seems to be a Kubernetes object, Namespace: apply"},
		{"a kubeconfig", "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'https://h'}}]\ncontexts: []\nusers: []", "It seems to be a kubeconfig: name it as kubeconfigFile"},
		{"Halyard's", "currentDeployment: default\ndeploymentConfigurations: [{name: default}]", "a configuration of Halyard: see docs/prog.md for the keys"},
		{"something else", "foo: 1\nqux: hunter2", "this is not a configuration of prog: none of its keys (foo, qux) is known: see docs/prog.md for the keys"},
		{"a password as a key", "{qux:hunter2}", "(qux:********) is known"},
		{"many keys", "aa1: 1\nbb2: 1\ncc3: 1\ndd4: 1\nee5: 1\nff6: 1\ngg7: 1\nhh8: 1\nii9: 1\njj0: 1", "(aa1, bb2, cc3, dd4, ee5, ff6, gg7, hh8, and 2 more) is known"},
		{"of the other program", "gadgets: {x: 1}\nserver: {port: 1}", "a.yml:1:1: this seems to be the configuration of other, not of prog: gadgets has no effect here, and it has no key that only prog has: name another file with --config"},
		{"of the other program, with keys that resemble ours", "gadgets: {x: 1}\nserver: {prot: 1}", "the configuration of other, not of prog: gadgets has no effect here"},
		{"of the other program, with keys that have no effect here", "future: {speed: 1}\nserver.port: 2", "the configuration of other, not of prog: future has no effect here"},
		{"of a third one", "future: {speed: 1}\nother: {x: 1}\nserver.port: 2", ""},
		{"of both", "gadgets: {x: 1}\nname: x", ""},
		{"of both, renamed", "gadgets: {x: 1}\nold.graceMs: 5", ""},
		{"a group", "- a\n- b", "the file must contain keys with values, got a list"},
	} {
		var s sample
		r := Parse("a.yml", []byte(tt.file), unrelatedOptions(), &s)
		switch {
		case tt.want == "" && len(r.Problems) > 0, tt.want != "" && len(r.Problems) != 1:
			t.Errorf("%s: got %v, want %q", tt.name, r.Err(), tt.want)
		case tt.want != "" && !strings.Contains(r.Err().Error(), tt.want):
			t.Errorf("%s: got\n%v\nwant\n%s", tt.name, r.Err(), tt.want)
		case strings.Contains(fmt.Sprint(r.Err()), "hunter2"):
			t.Errorf("%s: got a value in %v", tt.name, r.Err())
		}
	}
}

// TestOverlaysMayHaveUnknownKeys checks that overlays and imports may consist of unknown keys, unless it is known what
// they are.
func TestOverlaysMayHaveUnknownKeys(t *testing.T) {
	for _, tt := range []struct{ name, base, overlay, imported, want string }{
		{"keys of another product", sampleText, "foo: 1", "", ""},
		{"keys of another product in an import", sampleText + "spring.config.import: b.yml", "", "foo: 1", ""},
		{"an overlay", sampleText, "apiVersion: v1\nkind: ConfigMap\ndata: {x: 'server.port: 1'}", "", "a-local.yml:1:1: this is not a configuration of prog"},
		{"an import", sampleText + "spring.config.import: b.yml", "", "clusters: []\ncontexts: []", "b.yml:1:1: this is not a configuration of prog"},
		{"the overlay has what is missing", "gadgets: {}", "name: x", "", ""},
		{"the overlay has it not", "gadgets: {}", "server.port: 1", "", "a.yml:1:1: this seems to be the configuration of other"},
	} {
		contents := map[string]string{"a.yml": tt.base, "a-local.yml": tt.overlay, "b.yml": tt.imported}
		var s sample
		l := newLoader(unrelatedOptions(), &s, func(path string) ([]byte, error) {
			if content := contents[path]; content != "" {
				return []byte(content), nil
			}
			return nil, errNotFound
		})
		l.search(Search{File: "a.yml"})
		if err := l.content().Decode(&s, nil).Err(); (err != nil) != (tt.want != "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestHostileUnrelatedFilesPrintLittle reads files that are made to take long or to print much.
func TestHostileUnrelatedFilesPrintLittle(t *testing.T) {
	texts := &strings.Builder{}
	for i := range 5000 {
		fmt.Fprintf(texts, "  k%d: 'name: x'\n", i)
	}
	for name, file := range map[string]string{
		"many texts":     "apiVersion: v1\nkind: ConfigMap\ndata:\n" + texts.String(),
		"a text of text": "apiVersion: v1\nkind: ConfigMap\ndata: {a: \"" + strings.Repeat("b: ", 100_000) + "\"}",
		"long keys":      "apiVersion: v1\nkind: ConfigMap\n" + strings.Repeat("k", 1000) + ": {name: x}",
		"long names":     "apiVersion: v1\nkind: " + strings.Repeat("K", 100_000) + "\nmetadata: {name: " + strings.Repeat("n", 100_000) + "}",
		"bombs in texts": "apiVersion: v1\nkind: ConfigMap\ndata: {a: \"a: &a [x,x,x,x,x,x,x,x,x]\\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\\ng: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\"}",
	} {
		var s sample
		r := Parse("a.yml", []byte(file), unrelatedOptions(), &s)
		if len(r.Problems) != 1 || len(r.Err().Error()) > 2000 {
			t.Errorf("%s: got %d problems in %d bytes: %.500v", name, len(r.Problems), len(fmt.Sprint(r.Err())), r.Err())
		}
	}
}
