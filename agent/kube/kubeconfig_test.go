package kube

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSharedKubeconfigIsParsedOnce checks that accounts that share a file parse it once,
// and that a change of the file takes effect at once.
func TestSharedKubeconfigIsParsedOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	t.Setenv("KUBECONFIG", file)
	write := func(host string, at time.Time) {
		t.Helper()
		var b strings.Builder
		b.WriteString("apiVersion: v1\nkind: Config\nclusters:\n")
		fmt.Fprintf(&b, "- {name: c, cluster: {server: 'https://%s'}}\nusers: [{name: u, user: {token: t}}]\ncontexts:\n", host)
		for i := range 20 {
			fmt.Fprintf(&b, "- {name: x%d, context: {cluster: c, user: u}}\n", i)
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(host string, parses int) {
		t.Helper()
		before := kubeconfigs.file(file).parses
		for i := range 20 {
			for _, path := range []string{file, ""} {
				if cfg, _, err := (Access{KubeconfigFile: path, Context: fmt.Sprint("x", i)}).restConfig(); err != nil || cfg.Host != "https://"+host {
					t.Fatalf("got %v, %v, want host %s", cfg, err, host)
				}
			}
		}
		if got := kubeconfigs.file(file).parses - before; got != parses {
			t.Errorf("got %d parses, want %d", got, parses)
		}
	}
	old := time.Now().Add(-time.Hour)
	write("a", old)
	expect("a", 1)
	write("b", old.Add(time.Minute))
	expect("b", 1)
	// A file may change again without a new modification time, so a fresh one is not cached.
	write("c", time.Now().Add(time.Hour))
	expect("c", 40)
}
