package formerchart_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/formerchart"
	"github.com/vedette-io/vedette/internal/golden"
)

// TestFilesAreConverted converts values as the predecessor's users have them. In each file, what is secret contains HIDDEN, and must be in
// the Secrets only.
func TestFilesAreConverted(t *testing.T) {
	files, err := filepath.Glob("testdata/*.input.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("got the files %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			input, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			result, err := formerchart.Convert(input)
			if err != nil {
				t.Fatal(err)
			}
			base := strings.TrimSuffix(file, ".input.yaml")
			golden.Compare(t, base+".output.yaml", string(result.Values))
			var notes, secrets strings.Builder
			for _, n := range result.Notes {
				fmt.Fprintf(&notes, "%d: %s %s\n", n.Line, n.Path, n.Text)
			}
			for _, s := range result.Secrets {
				fmt.Fprintf(&secrets, "%s %s (%s):\n%s\n", s.Name, s.Key, s.Path, s.Content)
			}
			golden.Compare(t, base+".notes.txt", notes.String())
			golden.Compare(t, base+".secrets.txt", secrets.String())
			if strings.Contains(string(result.Values)+notes.String(), "HIDDEN") {
				t.Error("a secret is outside of Secrets")
			}
		})
	}
}

// TestBadFilesAreRejected checks that an error names key and line of everything that is wrong, and no contents.
func TestBadFilesAreRejected(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("config:\n  logging:\n    fields:\n      a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		fmt.Fprintf(&bomb, "      a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 10))
	}
	for _, test := range []struct {
		name, file string
		want       []string
	}{
		{"not YAML", "config: [HIDDEN", []string{"not YAML", "line 1"}},
		{"tabs", "config:\n\tlogging: HIDDEN", []string{"not YAML", "line 2"}},
		{"two documents", "replicas: 1\n---\nreplicas: 2\n", []string{"line 2: a second document begins"}},
		{"not UTF-8", "env: \xff", []string{"UTF-8"}},
		{"a list", "- a\n", []string{"line 1: it is a list, and values are a map"}},
		{"a text", "HIDDEN\n", []string{"it is a text"}},
		{"aliases", bomb.String(), []string{"too large"}},
		{"an alias of itself", "config: &a\n  logging: *a\n", []string{"too large"}},
		{"too large", "agentyml: " + strings.Repeat("x", formerchart.MaxBytes), []string{"more than 1048576 bytes"}},
		{"too many values", "a: [" + strings.Repeat("1,", 300_000) + "]", []string{"values"}},
		{"twice", "replicas: 1\nreplicas: 2\n", []string{"line 2: replicas is there twice"}},
		{"twice in two notations", "config:\n  zoneId: a\n  zone-id: b\n", []string{"line 3: config.zone-id is there twice"}},
		{"unknown", "replicas: 1\npodLabel: {}\nconfig: {loging: {}}\n",
			[]string{"line 2: podLabel is not a value of the chart agent-k8s-full: did you mean podLabels?", "line 3: config.loging is not a setting of the agent: did you mean logging?"}},
		{"unknown in a group", "image:\n  tag: x\n", []string{"line 2: image.tag is not a value"}},
		{"a value that looks like a key", "config: {clouddriver: {auth: {token:HIDDEN}}}", []string{"config.clouddriver.auth.token… is not a setting"}},
		{"wrong types", "replicas: many\nenv: {a: b}\nkubeconfigs: x\npodLabels: [a]\nimage: HIDDEN\nagentyml: [a]\nhub: {}\nconfig: HIDDEN\n",
			[]string{"line 1: replicas", "line 2: env", "line 3: kubeconfigs", "line 4: podLabels", "line 5: image", "line 6: agentyml", "line 8: config"}},
		{"wrong types in the configuration", "config:\n  timeoutSeconds: HIDDEN\n  kubernetes:\n    accounts:\n    - {name: a, kinds: {b: HIDDEN}}\n    - {nam: b}\n",
			[]string{`line 2: "timeoutSeconds"`, "line 5: ", "line 6: config.kubernetes.accounts[1].nam is not"}},
		{"a number out of range", "config:\n  prometheus:\n    port: 70000\n", []string{`line 3: "prometheus.port"`}},
		{"wrong content of agentyml", "agentyml: |\n  logging:\n    levl: x\n", []string{"line 3: agentyml.logging.levl is not a setting of the agent: did you mean level?"}},
		{"agentyml that is not YAML", "agentyml: '[HIDDEN'\n", []string{"line 1: agentyml: it is not YAML"}},
		{"environment", "env:\n- {nam: HIDDEN}\n- {name: \"a/../b\", value: HIDDEN}\n- HIDDEN\n",
			[]string{"line 2: env.nam is unknown", "line 3: the name of a variable", "line 4: env is a text"}},
		{"kubeconfigs", "kubeconfigs:\n  a: {file: config}\n  b: {secret: HIDDEN!}\n  c: {x: y, secret: s}\n",
			[]string{"line 2: kubeconfigs.a.secret is missing", "line 3: kubeconfigs.b.secret is not the name", "line 4: kubeconfigs.c.x is unknown"}},
		{"resources", "podResources: {limit: {cpu: 1}, requests: {cpu: [1]}}\n", []string{"podResources.limit is unknown", "podResources.requests.cpu is a list"}},
		{"pull policy", "image: {imagePullPolicy: Sometimes}\n", []string{"must be Always, IfNotPresent or Never"}},
		{"account without a name", "config: {kubernetes: {accounts: [{serviceAccount: true}]}}\n", []string{"config.kubernetes.accounts[0] has no name"}},
		{"an account that is there twice", "config: {kubernetes: {accounts: [{name: a, kubeconfigFile: /a}, {name: a, kubeconfigFile: /b}]}}\n",
			[]string{"config.kubernetes.accounts[1] has the name of another account"}},
		{"a secret in a list", "config:\n  kubernetes:\n    accounts:\n    - name: a\n      cloud: {provider: aks, server: \"https://a\", aks: {clientSecret: HIDDEN}}\n",
			[]string{"line 5: config.kubernetes.accounts[0].cloud.aks.clientSecret is secret"}},
		{"a variable with two values", "env:\n- {name: A, value: HIDDEN, valueFrom: {secretKeyRef: {name: a, key: b}}}\n", []string{"line 2: a variable of env has value and valueFrom"}},
		{"a number that is not whole", "replicas: 1e3\n", []string{"replicas is a number, want a whole number"}},
		{"keys that are not names", "? [a]\n: b\n", []string{"line 1: a key of the file is a list"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := formerchart.Convert([]byte(test.file))
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want it to say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "HIDDEN") {
				t.Errorf("the error has a value: %v", err)
			}
		})
	}
}

// TestTableIsSorted checks the order that formerly.yaml and messages have.
func TestTableIsSorted(t *testing.T) {
	if !slices.IsSortedFunc(formerchart.Values(), func(a, b formerchart.Value) int { return strings.Compare(a.Path, b.Path) }) {
		t.Error("Values is not sorted by path")
	}
}

// FuzzConvert checks that no file lets the conversion crash, and that what is converted is valid UTF-8.
func FuzzConvert(f *testing.F) {
	files, err := filepath.Glob("testdata/*.input.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		input, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		result, err := formerchart.Convert(file)
		if err == nil && !bytes.Equal(bytes.ToValidUTF8(result.Values, nil), result.Values) {
			t.Error("the result is not text")
		}
	})
}
