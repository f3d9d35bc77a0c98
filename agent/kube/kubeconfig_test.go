package kube

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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

// TestUnusedKubeconfigsAreForgotten checks that the cache does not keep the files of removed accounts.
func TestUnusedKubeconfigsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := kubeconfigCache{files: map[string]*kubeconfigFile{}}
		cache.file("removed")
		used := cache.file("used")
		time.Sleep(maxUnused)
		if cache.file("used") != used {
			t.Error("a file that is used was forgotten")
		}
		time.Sleep(time.Second)
		cache.file("new")
		if cache.files["removed"] != nil || cache.files["used"] != used || len(cache.files) != 2 {
			t.Errorf("got the files %v, want those that are used and new", slices.Collect(maps.Keys(cache.files)))
		}
	})
}
