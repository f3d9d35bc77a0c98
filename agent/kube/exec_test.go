//go:build unix

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
)

// connectWithExecPlugin is a cluster whose kubeconfig signs in by a shell script.
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

// tokenServer answers /version and notes whose tokens come.
type tokenServer struct {
	mu      sync.Mutex
	tokens  []string
	refused map[string]bool
}

// ServeHTTP refuses some tokens.
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

// TestExecPluginRunsWhenCredentialsExpireOrAreRefused holds when the program of a kubeconfig is run: once, when what
// it gave has expired, and when the API server refuses that.
func TestExecPluginRunsWhenCredentialsExpireOrAreRefused(t *testing.T) {
	count := func(t *testing.T) string {
		return "cd " + t.TempDir() + `; echo >> runs; n=$(wc -l < runs | tr -d ' '); `
	}
	for why, tt := range map[string]struct {
		prelude string
		expires string
		refused map[string]bool
		want    string
	}{
		"once":                       {"", "", nil, "t1 t1 t1"},
		"it leaves something behind": {"sleep 5 & ", "", nil, "t1 t1 t1"},
		"it is far from expired":     {"", `,"expirationTimestamp":"2999-01-01T00:00:00Z"`, nil, "t1 t1 t1"},
		"it expired by this clock":   {"", `,"expirationTimestamp":"2001-01-01T00:00:00Z"`, nil, "t1 t1 t1"},
		"a token that was refused":   {"", "", map[string]bool{"t1": true}, "t1 t2 t2"},
		"tokens that are all of no":  {"", "", map[string]bool{"t1": true, "t2": true, "t3": true}, "t1 t2 t3"},
	} {
		t.Run(why, func(t *testing.T) {
			b := &tokenServer{refused: tt.refused}
			c := connectWithExecPlugin(t, b.ServeHTTP, count(t)+tt.prelude+fmt.Sprintf(execCredentialScript, "t$n", tt.expires))
			for range 3 {
				_, _, _ = c.Identify(t.Context()) // refusals are part of it
			}
			if got := strings.Join(b.tokens, " "); got != tt.want {
				t.Errorf("tokens %s, want %s", got, tt.want)
			}
		})
	}
}

// TestExecPluginErrors holds what is said of a program that gives nothing to
// sign in with, and that none of what it printed is said.
func TestExecPluginErrors(t *testing.T) {
	for why, tt := range map[string]struct{ script, want string }{
		"it fails":              {"echo secret; echo no session: log in first >&2; exit 3", "exit status 3: no session: log in first"},
		"it prints no JSON":     {"echo secret", "not JSON of an ExecCredential, in 7 bytes"},
		"it prints too much":    {"head -c 3000000 /dev/zero | tr '\\0' x", "in 1048576 bytes"},
		"another version":       {strings.Replace(fmt.Sprintf(execCredentialScript, "secret", ""), "k8s.io/v1", "k8s.io/v1beta1", 1), `and an ExecCredential of "client.authentication.k8s.io/v1" was asked for`},
		"nothing to sign in by": {fmt.Sprintf(execCredentialScript, "", ""), "neither a token nor a certificate"},
		"half of a certificate": {fmt.Sprintf(execCredentialScript, "", `,"clientKeyData":"secret"`), "can't be read, or don't belong together"},
	} {
		t.Run(why, func(t *testing.T) {
			c := connectWithExecPlugin(t, (&tokenServer{}).ServeHTTP, tt.script)
			_, _, err := c.Identify(t.Context())
			if vedette.KindOf(err) != vedette.Denied || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestHungExecPluginIsKilled holds that a program which does not end keeps neither
// a request that is given up, nor the end of the cluster's use, and does not outlive
// that, with what it started.
func TestHungExecPluginIsKilled(t *testing.T) {
	for why, script := range map[string]string{"itself": "exec sleep 3600", "what it started": "sleep 3600 & wait"} {
		t.Run(why, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			must(t, syscall.Mkfifo(fifo, 0o600))
			c := connectWithExecPlugin(t, (&tokenServer{}).ServeHTTP, "exec 3< "+fifo+"; "+script)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, _, err := c.Identify(ctx)
				done <- err
			}()
			pipe, err := os.OpenFile(fifo, os.O_WRONLY, 0) // which waits for the program
			must(t, err)
			defer pipe.Close()
			cancel()
			if err := <-done; err == nil {
				t.Error("the request that was given up did not fail")
			}
			c.Close()
			for deadline := time.Now().Add(time.Minute); err == nil && time.Now().Before(deadline); {
				_, err = pipe.Write([]byte{0}) // until nobody has the other end
			}
			if !errors.Is(err, syscall.EPIPE) {
				t.Errorf("something of the program is still there: %v", err)
			}
		})
	}
}
