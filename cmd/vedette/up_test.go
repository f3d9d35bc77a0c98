package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestUpPrintsNoHiddenCharacters runs `vedette up` with a cluster that refuses everything in hostile
// words, under a name that is hostile too.
func TestUpPrintsNoHiddenCharacters(t *testing.T) {
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"canary` + hostileText + `"}`))
	}))
	t.Cleanup(cluster.Close)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"evil\u001b[31m\u202e","clusters":[{"name":"c","cluster":{"server":%q}}],
		"contexts":[{"name":"evil\u001b[31m\u202e","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}]}`, cluster.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &watchedBuffer{text: "canary", found: cancel}
	root := newRoot()
	root.SetArgs([]string{"up", "--kubeconfig", kubeconfig, "--data-dir", t.TempDir(), "--port", "0", "--grpc-port", "0"})
	root.SetOut(out)
	root.SetErr(out)
	err := execute(ctx, root)
	got := out.String()
	if err != nil && !strings.Contains(err.Error(), "canary") && ctx.Err() == nil || !strings.Contains(got, "canary") {
		t.Fatalf("got %q, %v, want the words of the cluster", got, err)
	}
	expectVisible(t, "up", "output", got, false)
	if strings.Contains(got, "\nError: forged") {
		t.Errorf("got a forged line in %q", got)
	}
}

// watchedBuffer calls found when a text was written.
type watchedBuffer struct {
	mu    sync.Mutex
	b     bytes.Buffer
	text  string
	found func()
}

func (w *watchedBuffer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Write(p)
	if strings.Contains(w.b.String(), w.text) {
		w.found()
	}
	return len(p), nil
}

func (w *watchedBuffer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// TestUpChecksContexts runs `vedette up` with contexts that do not exist. It must end, because nothing that happens later could help.
func TestUpChecksContexts(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const entry = `{"name":%q,"context":{"cluster":"c","user":"u"}}`
	const clusters = `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{}}],`
	two := write("two", clusters+fmt.Sprintf(`"contexts":[`+entry+`,`+entry+`]}`, "prod", "dev"))
	dangling := write("dangling", clusters+fmt.Sprintf(`"current-context":"gone","contexts":[`+entry+`]}`, "dev"))
	empty, missing := write("empty", `{"apiVersion":"v1","kind":"Config"}`), filepath.Join(dir, "missing")
	for _, tt := range []struct{ name, variable, flags, want string }{
		{"a context that does not exist", two, "--context staging", "kubeconfig file " + two + ` has no context "staging": it has dev and prod`},
		{"one of two does not exist", missing, "--context dev --context prd --kubeconfig " + two,
			"kubeconfig file " + two + ` has no context "prd": it has dev and prod`},
		{"in several files", missing + string(filepath.ListSeparator) + two, "--context staging",
			"kubeconfig of the files " + missing + " (which does not exist) and " + two + ` has no context "staging": it has dev and prod`},
		{"no current context", two, "", "kubeconfig file " + two + " has no current-context: choose one of its contexts (dev and prod): use --context or --all-contexts"},
		{"a current context that does not exist", dangling, "", "kubeconfig file " + dangling + ` has the current-context "gone", but no such context: it has dev: use --context or --all-contexts`},
		{"a file that does not exist", missing, "--all-contexts", "kubeconfig file " + missing + " (which does not exist) has no contexts: set KUBECONFIG or use --kubeconfig"},
		{"files without contexts", empty + string(filepath.ListSeparator) + missing, "",
			"kubeconfig of the files " + empty + " and " + missing + " (which does not exist) has no contexts: set KUBECONFIG or use --kubeconfig"},
		{"a file that does not exist, by a flag", two, "--kubeconfig " + missing, "kubeconfig file " + missing + " does not exist: "},
	} {
		t.Setenv("KUBECONFIG", tt.variable)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // if it does not end by itself
		_, errOut, err := runCLI(ctx, append(strings.Fields("up --port 0 --grpc-port 0 --data-dir "+t.TempDir()), strings.Fields(tt.flags)...)...)
		cancel()
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || errOut != "" {
			t.Errorf("%s: got %v, %q, want %q", tt.name, err, errOut, tt.want)
		}
	}
}
