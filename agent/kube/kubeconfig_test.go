package kube

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSharedKubeconfigIsParsedOnce holds that accounts which share a file of many
// contexts don't parse it each on its own, again and again, and that a change of the
// file counts at once all the same.
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
		before := kubeconfigs.parses
		for i := range 20 {
			for _, path := range []string{file, ""} {
				if cfg, err := (Access{KubeconfigFile: path, Context: fmt.Sprint("x", i)}).restConfig(); err != nil || cfg.Host != "https://"+host {
					t.Fatalf("%v, %v; want %s", cfg, err, host)
				}
			}
		}
		if got := kubeconfigs.parses - before; got != parses {
			t.Errorf("parsed %d times, want %d", got, parses)
		}
	}
	old := time.Now().Add(-time.Hour)
	write("a", old)
	expect("a", 1)
	write("b", old.Add(time.Minute))
	expect("b", 1)
	// Within the file's time of change more changes than one are possible.
	write("c", time.Now().Add(time.Hour))
	expect("c", 40)
}
