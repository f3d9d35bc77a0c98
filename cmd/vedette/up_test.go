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
	err := root.ExecuteContext(ctx)
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
