//go:build unix

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
)

// connectWithExecPlugin returns a cluster whose kubeconfig runs a shell script as exec
// plugin.
func connectWithExecPlugin(t *testing.T, h http.HandlerFunc, script string) *kube.Cluster {
	t.Helper()
	server := kubetest.NewServer(t, h)
	user := fmt.Sprintf("{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: sh, args: [-c, %q]}}", script)
	contents := strings.Replace(string(kubetest.Kubeconfig(server.URL, kubetest.CertPEM(server))), "{token: t}", user, 1)
	c, err := kube.Connect(kube.Access{KubeconfigContents: []byte(contents)}, kube.Options{})
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

const execCredentialScript = `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'%s'"%s}}'`

// tokenServer records the tokens of requests to /version.
type tokenServer struct {
	mu      sync.Mutex
	tokens  []string
	refused map[string]bool
}

// ServeHTTP rejects the tokens in refused.
func (b *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if r.URL.Path == "/version" {
		b.tokens = append(b.tokens, token)
	}
	if b.refused[token] {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	fmt.Fprint(w, `{"gitVersion":"v1","kind":"List","metadata":{"resourceVersion":"1"},"items":[]}`)
}

// TestExecPluginRunsWhenCredentialsExpireOrAreRefused checks that the exec plugin runs
// once, and again when its credentials expire or the API server rejects them.
func TestExecPluginRunsWhenCredentialsExpireOrAreRefused(t *testing.T) {
	count := func(t *testing.T) string {
		return "cd " + t.TempDir() + `; echo >> runs; n=$(wc -l < runs | tr -d ' '); `
	}
	for name, tt := range map[string]struct {
		prelude string
		expires string
		refused map[string]bool
		want    string
	}{
		"once":                       {"", "", nil, "t1 t1 t1"},
		"it leaves a process behind": {"sleep 5 & ", "", nil, "t1 t1 t1"},
		"it expires in the future":   {"", `,"expirationTimestamp":"2999-01-01T00:00:00Z"`, nil, "t1 t1 t1"},
		"it has expired already":     {"", `,"expirationTimestamp":"2001-01-01T00:00:00Z"`, nil, "t1 t1 t1"},
		"one token is rejected":      {"", "", map[string]bool{"t1": true}, "t1 t2 t2"},
		"all tokens are rejected":    {"", "", map[string]bool{"t1": true, "t2": true, "t3": true}, "t1 t2 t3"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &tokenServer{refused: tt.refused}
			c := connectWithExecPlugin(t, b.ServeHTTP, count(t)+tt.prelude+fmt.Sprintf(execCredentialScript, "t$n", tt.expires))
			for range 3 {
				_, _, _ = c.Identify(t.Context()) // some requests are rejected on purpose
			}
			if got := strings.Join(b.tokens, " "); got != tt.want {
				t.Errorf("got tokens %s, want %s", got, tt.want)
			}
		})
	}
}

// TestStaticPluginOnPathRuns checks that a program runs that an init container has copied into a directory on the PATH, although the image has
// neither a shell nor libraries.
func TestStaticPluginOnPathRuns(t *testing.T) {
	plugins := t.TempDir()
	source := filepath.Join(t.TempDir(), "main.go")
	program := fmt.Sprintf("package main\n\nimport \"os\"\n\nfunc main() { _, _ = os.Stdout.WriteString(%q) }\n",
		`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"of-the-plugin"}}`)
	must(t, os.WriteFile(source, []byte(program), 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(plugins, "my-plugin"), source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tokens := &tokenServer{}
	server := kubetest.NewServer(t, tokens.ServeHTTP)
	const user = "{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: my-plugin}}"
	access := kube.Access{KubeconfigContents: []byte(strings.Replace(string(kubetest.Kubeconfig(server.URL, kubetest.CertPEM(server))), "{token: t}", user, 1))}
	t.Setenv("PATH", "/usr/local/bin:"+t.TempDir())
	if _, err := kube.Connect(access, kube.Options{}); err == nil || !strings.Contains(err.Error(), "install it beside the agent") {
		t.Errorf("got error %v before the plugin is installed", err)
	}
	t.Setenv("PATH", "/usr/local/bin:"+plugins)
	c, err := kube.Connect(access, kube.Options{})
	must(t, err)
	t.Cleanup(c.Close)
	_, _, _ = c.Identify(t.Context()) // the server has no namespaces
	if !slices.Contains(tokens.tokens, "of-the-plugin") || c.Issuer() != "exec plugin my-plugin" {
		t.Errorf("got the tokens %q by %q", tokens.tokens, c.Issuer())
	}
}

// TestExecPluginErrors checks the errors of a plugin that returns no credentials. They
// must not contain what the plugin printed to stdout.
func TestExecPluginErrors(t *testing.T) {
	for name, tt := range map[string]struct{ script, want string }{
		"it fails":              {"echo secret; echo no session: log in first >&2; exit 3", "exit status 3: no session: log in first"},
		"it prints no JSON":     {"echo secret", "7 bytes are not an ExecCredential in JSON"},
		"it prints too much":    {"head -c 3000000 /dev/zero | tr '\\0' x", "1048576 bytes are not"},
		"another version":       {strings.Replace(fmt.Sprintf(execCredentialScript, "secret", ""), "k8s.io/v1", "k8s.io/v1beta1", 1), `want ExecCredential of "client.authentication.k8s.io/v1"`},
		"no credentials":        {fmt.Sprintf(execCredentialScript, "", ""), "neither a token nor a certificate"},
		"half of a certificate": {fmt.Sprintf(execCredentialScript, "", `,"clientKeyData":"secret"`), "are invalid or do not match"},
	} {
		t.Run(name, func(t *testing.T) {
			c := connectWithExecPlugin(t, (&tokenServer{}).ServeHTTP, tt.script)
			_, _, err := c.Identify(t.Context())
			if vedette.KindOf(err) != vedette.Denied || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestHungExecPluginIsKilled checks that a plugin that hangs blocks neither a canceled
// request nor Close, and that Close kills it and its child processes.
func TestHungExecPluginIsKilled(t *testing.T) {
	for name, script := range map[string]string{"the plugin": "exec sleep 3600", "a child process": "sleep 3600 & wait"} {
		t.Run(name, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			must(t, syscall.Mkfifo(fifo, 0o600))
			c := connectWithExecPlugin(t, (&tokenServer{}).ServeHTTP, "exec 3< "+fifo+"; "+script)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, _, err := c.Identify(ctx)
				done <- err
			}()
			pipe, err := os.OpenFile(fifo, os.O_WRONLY, 0) // waits until the plugin opens it
			must(t, err)
			defer pipe.Close()
			cancel()
			if err := <-done; err == nil {
				t.Error("canceled request: got no error, want one")
			}
			c.Close()
			for deadline := time.Now().Add(time.Minute); err == nil && time.Now().Before(deadline); {
				_, err = pipe.Write([]byte{0}) // until no process has the other end open
			}
			if !errors.Is(err, syscall.EPIPE) {
				t.Errorf("got error %v, want %v: a process of the plugin is still running", err, syscall.EPIPE)
			}
		})
	}
}
