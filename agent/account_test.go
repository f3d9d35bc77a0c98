package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
)

// apiServer records the tokens of requests to /version.
func apiServer(t *testing.T, requests chan<- string) *httptest.Server {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			requests <- r.Header.Get("Authorization")
		}
		fmt.Fprint(w, `{"gitVersion":"v1","kind":"List","metadata":{"uid":"u","resourceVersion":"1"},"items":[]}`)
	}))
	t.Cleanup(server.Close)
	return server
}

// TestReplacedKubeconfigIsReloaded checks that an account uses a replaced kubeconfig,
// whatever changed in it, and ignores a kubeconfig that is invalid or has not changed.
func TestReplacedKubeconfigIsReloaded(t *testing.T) {
	firstRequests, secondRequests := make(chan string, 100), make(chan string, 100)
	first, second := apiServer(t, firstRequests), apiServer(t, secondRequests)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(url, token string) {
		content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {token: %s}}], clusters: [{name: a, cluster: {server: %q, insecure-skip-tls-verify: true}}]}`, token, url)
		if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write(first.URL, "one")
	a := New(Config{Uplink: uplink.Config{Target: "passthrough:///127.0.0.1:1", Creds: insecure.NewCredentials(), Agent: "a"}, RereadInterval: time.Millisecond,
		Accounts: []Account{{Name: "prod", Access: kube.Access{KubeconfigFile: file}}}}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	defer func() {
		cancel()
		<-done
	}()
	expectToken := func(requests <-chan string, want string) {
		t.Helper()
		select {
		case got := <-requests:
			if got != want {
				t.Errorf("got a request with token %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("got no request with token %q", want)
		}
	}
	expectToken(firstRequests, "Bearer one")
	write(first.URL, "two")
	expectToken(firstRequests, "Bearer two")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(first.URL, "two")
	write(second.URL, "three")
	expectToken(secondRequests, "Bearer three")
	if len(firstRequests) != 0 {
		t.Errorf("got %d more requests to the first cluster, want none", len(firstRequests))
	}
}
