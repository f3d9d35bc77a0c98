//go:build unix

package kube_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

const oneContext = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n" +
	"clusters: [{name: c, cluster: {server: 'https://x', %s}}]\nusers: [{name: u, user: {%s}}]\n"

// TestFilesThatCannotBeReadAreRefused checks that an account whose files are pipes, devices or
// directories, or are too large, is refused at once. Reading them would block the agent, or take all
// of its memory, so each Connect must return without anyone who writes into the pipe.
func TestFilesThatCannotBeReadAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	must(t, syscall.Mkfifo(pipe, 0o600))
	must(t, os.WriteFile(large, nil, 0o600))
	must(t, os.Truncate(large, 1<<34))
	bad := map[string]string{pipe: "is not a regular file", large: "the maximum is", "/dev/zero": "is not a regular file", dir: "is a directory"}
	for path, want := range bad {
		contents := func(cluster, user string) kube.Access {
			return kube.Access{KubeconfigContents: fmt.Appendf(nil, oneContext, cluster, user)}
		}
		for name, access := range map[string]kube.Access{
			"kubeconfigFile":        {KubeconfigFile: path},
			"certificate-authority": contents("certificate-authority: "+path, "token: t"),
			"tokenFile":             contents("", "tokenFile: "+path),
			"client-certificate":    contents("", "client-certificate: "+path+", client-key: "+path),
			"oAuthServiceAccount":   {KubeconfigContents: fmt.Appendf(nil, oneContext, "", "token: t"), OAuthServiceAccount: path},
		} {
			_, err := kube.Connect(access, kube.Options{})
			if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s %s: got error %v, want %q", name, path, err, want)
			}
		}
		t.Setenv("KUBECONFIG", path)
		if _, err := kube.Connect(kube.Access{}, kube.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("KUBECONFIG=%s: got error %v, want %q", path, err, want)
		}
	}
}

// TestChangedAccessReconnects checks which changes of a kubeconfig and its files make an account reconnect.
func TestChangedAccessReconnects(t *testing.T) {
	dir := t.TempDir()
	file, token := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "token")
	write := func(path, text string) {
		t.Helper()
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(token, "a")
	user := "tokenFile: " + token
	write(file, fmt.Sprintf(oneContext, "proxy-url: 'http://u:p@proxy:1'", user))
	access := kube.Access{KubeconfigFile: file}
	c, err := kube.Connect(access, kube.Options{})
	must(t, err)
	t.Cleanup(c.Close)
	for _, tt := range []struct {
		name, path, text string
		access           kube.Access
		want             bool
	}{
		{"nothing", token, "a", access, false},
		{"a new token in the file, which client-go reads again", token, "b", access, false},
		{"another proxy", file, fmt.Sprintf(oneContext, "proxy-url: 'http://u:p@proxy:2'", user), access, true},
		{"another password of the proxy", file, fmt.Sprintf(oneContext, "proxy-url: 'http://u:q@proxy:1'", user), access, true},
		{"no proxy", file, fmt.Sprintf(oneContext, "", user), access, true},
		{"a token in place of a file", file, fmt.Sprintf(oneContext, "proxy-url: 'http://u:p@proxy:1'", "token: b"), access, true},
		{"as before", file, fmt.Sprintf(oneContext, "proxy-url: 'http://u:p@proxy:1'", user), access, false},
	} {
		write(tt.path, tt.text)
		if changed, err := c.AccessChanged(tt.access); err != nil || changed != tt.want {
			t.Errorf("%s: got %t, %v, want %t", tt.name, changed, err, tt.want)
		}
	}
}
