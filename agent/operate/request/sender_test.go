package request

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

// TestDryRunIndependentOfContext sends requests of all methods with a context that knows nothing
// of the operation, and expects each that could change something to be a dry run.
func TestDryRunIndependentOfContext(t *testing.T) {
	var dryRuns []string // the value of each request's option
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var options struct{ DryRun []string }
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodDelete {
			_ = json.Unmarshal(body, &options)
		}
		dryRuns = append(options.DryRun, r.URL.Query()["dryRun"]...)
		fmt.Fprint(w, `{}`)
	}))
	defer server.Close()
	kubeconfig := fmt.Sprintf(`{clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}]}`, server.URL)
	cluster, err := kube.Connect(kube.Access{KubeconfigContents: []byte(kubeconfig)}, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	o, err := NewClient(cluster, Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := Path{Resource: vedette.Resource{Kind: vedette.Kind{Name: "ConfigMap"}, Version: "v1", Plural: "configmaps", Namespaced: true}, Namespace: "n", Name: "c"}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet} {
		for _, r := range []*Sender{o.NewSender(vedette.Operation{DryRun: true}, Control{}), o.NewSender(vedette.Operation{}, Control{}).AsDryRun(), o.NewSender(vedette.Operation{}, Control{})} {
			if _, _, err := r.Do(context.Background(), p, Request{Method: method}); err != nil {
				t.Fatal(err)
			}
			var want []string
			if r.IsDryRun() && method != http.MethodGet {
				want = []string{"All"}
			}
			if !slices.Equal(dryRuns, want) {
				t.Errorf("dryRun of %s in a run with dryRun=%v: got %q, want %q", method, r.IsDryRun(), dryRuns, want)
			}
		}
	}
}

// TestRequestsAreSentInOnePlace reads the package's source: cluster.Do, which may change the
// cluster, is called by Sender.sendOnce only, and nothing is kept in a context.
func TestRequestsAreSentInOnePlace(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]string{"cluster.Do": "sendOnce", "cluster.Stream": "Stream"}
	found := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				selector, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				call := lastName(selector.X) + "." + selector.Sel.Name
				if caller, ok := allowed[call]; ok && caller != f.Name.Name || call == "context.WithValue" || call == "ctx.Value" {
					t.Errorf("%s calls %s: send requests by Sender.Do, and keep what they need in the Sender", f.Name.Name, call)
				}
				found[call] = true
				return true
			})
		}
	}
	for call := range allowed {
		if !found[call] {
			t.Errorf("no function calls %s: correct this test", call)
		}
	}
}

// lastName returns the last identifier of a chain of selectors.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
