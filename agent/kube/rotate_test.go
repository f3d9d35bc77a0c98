package kube_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
)

// rotatingServer is an API server whose certificate and authority change.
type rotatingServer struct {
	*httptest.Server
	tls  atomic.Pointer[tls.Config]
	next chan string // what open watches receive
}

func startRotatingServer(t *testing.T) *rotatingServer {
	t.Helper()
	s := &rotatingServer{next: make(chan string)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.answer))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		cfg := s.tls.Load().Clone()
		cfg.NextProtos = []string{"h2", "http/1.1"}
		return cfg, nil
	}}
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// answer says who asks.
func (s *rotatingServer) answer(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s\n", r.TLS.PeerCertificates[0].Subject.CommonName, r.Header.Get("Authorization"))
	if r.URL.Path != "/watch" {
		return
	}
	_ = http.NewResponseController(w).Flush()
	select {
	case line := <-s.next:
		fmt.Fprintln(w, line)
	case <-r.Context().Done():
	}
}

// rotatedFiles are the files of a kubeconfig: authority, certificate, key and token.
type rotatedFiles struct{ dir string }

func (f rotatedFiles) path(name string) string { return filepath.Join(f.dir, name) }

func (f rotatedFiles) access() kube.Access { return kube.Access{KubeconfigFile: f.path("kubeconfig")} }

// use makes the files those of a user of an authority.
func (f rotatedFiles) use(t *testing.T, url string, ca *keypairtest.Authority, user, token string) {
	t.Helper()
	pair := ca.Issue(user)
	for name, from := range map[string]string{"ca.crt": ca.File, "user.crt": pair.Cert, "user.key": pair.Key} {
		data, err := os.ReadFile(from)
		must(t, err)
		must(t, os.WriteFile(f.path(name), data, 0o600))
	}
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"+
		"users: [{name: a, user: {token: %s, client-certificate: %s, client-key: %s}}]\nclusters: [{name: a, cluster: {server: %q, certificate-authority: %s}}]\n",
		token, f.path("user.crt"), f.path("user.key"), url, f.path("ca.crt"))
	must(t, os.WriteFile(f.path("kubeconfig"), []byte(text), 0o600))
}

// verify accepts credentials with which the API server can be reached.
func verify(ctx context.Context, c *kube.Cluster) error {
	resp, err := c.Do(ctx, kube.Request{Path: "/who"})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// who returns as whom the API server sees c.
func who(t *testing.T, c *kube.Cluster) string {
	t.Helper()
	resp, err := c.Do(t.Context(), kube.Request{Path: "/who"})
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return strings.TrimSpace(string(body))
}

// connectRotating starts a server with a certificate of ca, and connects as agent-1 with token one.
func connectRotating(t *testing.T, ca *keypairtest.Authority) (*rotatingServer, rotatedFiles, *kube.Cluster) {
	t.Helper()
	server, files := startRotatingServer(t), rotatedFiles{t.TempDir()}
	server.tls.Store(ca.ServerTLS())
	files.use(t, server.URL, ca, "agent-1", "one")
	c, err := kube.Connect(files.access(), kube.Options{})
	must(t, err)
	t.Cleanup(c.Close)
	return server, files, c
}

// TestOpenWatchSurvivesRotation replaces the authority, the certificate, the key and the token of a user while a watch
// is open.
func TestOpenWatchSurvivesRotation(t *testing.T) {
	first, second := keypairtest.New(t), keypairtest.New(t)
	server, files, c := connectRotating(t, first)
	watch, err := c.Stream(t.Context(), kube.Request{Path: "/watch"})
	must(t, err)
	defer watch.Body.Close()
	lines := bufio.NewReader(watch.Body)
	if line, err := lines.ReadString('\n'); err != nil || line != "agent-1 Bearer one\n" || who(t, c) != "agent-1 Bearer one" {
		t.Fatalf("got %q, %v at first", line, err)
	}

	server.tls.Store(second.ServerTLS())
	files.use(t, server.URL, second, "agent-2", "two")
	errOther := errors.New("another cluster")
	if rotated, err := c.Rotate(t.Context(), files.access(), func(context.Context, *kube.Cluster) error { return errOther }); rotated || !errors.Is(err, errOther) {
		t.Errorf("got %t, %v, want the error of verify", rotated, err)
	}
	if changed, err := c.AccessChanged(files.access()); !changed || err != nil {
		t.Errorf("got %t, %v after a rotation that was not verified", changed, err)
	}
	verified := ""
	rotated, err := c.Rotate(t.Context(), files.access(), func(_ context.Context, rotated *kube.Cluster) error {
		verified = who(t, rotated)
		return nil
	})
	if err != nil || !rotated || verified != "agent-2 Bearer two" {
		t.Fatalf("got %t, %v, verified as %q", rotated, err, verified)
	}
	if got := who(t, c); got != "agent-2 Bearer two" {
		t.Errorf("got %q after the rotation", got)
	}
	if changed, err := c.AccessChanged(files.access()); changed || err != nil {
		t.Errorf("got %t, %v after the rotation", changed, err)
	}
	server.next <- "event"
	if line, err := lines.ReadString('\n'); err != nil || line != "event\n" {
		t.Errorf("got %q, %v from the watch that was open", line, err)
	}
}

// TestRotateIsForTheSameAddress checks what a rotation leaves to a new connection, and that files which
// cannot be used change nothing.
func TestRotateIsForTheSameAddress(t *testing.T) {
	ca := keypairtest.New(t)
	server, files, c := connectRotating(t, ca)
	files.use(t, "https://127.0.0.1:1", ca, "agent-1", "one")
	if rotated, err := c.Rotate(t.Context(), files.access(), verify); rotated || err != nil {
		t.Errorf("another address: got %t, %v", rotated, err)
	}
	files.use(t, server.URL, ca, "agent-2", "two")
	must(t, os.WriteFile(files.path("user.key"), []byte("half of a k"), 0o600))
	if rotated, err := c.Rotate(t.Context(), files.access(), verify); rotated || err == nil {
		t.Errorf("half of a key: got %t, %v", rotated, err)
	}
	if got := who(t, c); got != "agent-1 Bearer one" {
		t.Errorf("got %q, want what was used before", got)
	}
}

// TestFilesAreUsedAfterRotation checks that new connections use the credentials in use, whatever the files contain
// that the kubeconfig names.
func TestFilesAreUsedAfterRotation(t *testing.T) {
	ca, foreign := keypairtest.New(t), keypairtest.New(t)
	server, files, c := connectRotating(t, ca)
	check := func(name string) {
		t.Helper()
		server.CloseClientConnections()
		kube.ReloadNow(c) // as exec plugins do, and rejected requests
		if got := who(t, c); got != "agent-1 Bearer one" {
			t.Errorf("%s: got %q", name, got)
		}
		if rotated, err := c.Rotate(t.Context(), files.access(), verify); rotated || err == nil {
			t.Errorf("%s: got %t, %v, want an error of the rotation", name, rotated, err)
		}
	}
	files.use(t, server.URL, foreign, "agent-2", "two")
	check("of another authority")
	for _, name := range []string{"ca.crt", "user.crt", "user.key"} {
		files.use(t, server.URL, ca, "agent-2", "two")
		for _, text := range []string{"half of", ""} {
			must(t, os.WriteFile(files.path(name), []byte(text), 0o600))
			check(fmt.Sprintf("%s is %q", name, text))
		}
		must(t, os.Remove(files.path(name)))
		check(name + " is gone")
	}
	files.use(t, server.URL, ca, "agent-2", "two")
	if rotated, err := c.Rotate(t.Context(), files.access(), verify); !rotated || err != nil || who(t, c) != "agent-2 Bearer two" {
		t.Errorf("got %t, %v for files that can be used", rotated, err)
	}
}

// TestRotateExecPlugin checks that another plugin replaces the one before.
func TestRotateExecPlugin(t *testing.T) {
	server := kubetest.NewServer(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Authorization")) })
	file := filepath.Join(t.TempDir(), "kubeconfig")
	use := func(token string) {
		text := strings.Replace(string(kubetest.Kubeconfig(server.URL, kubetest.CertPEM(server))), "token: t",
			`exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: echo, args: ['{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "`+token+`"}}']}`, 1)
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	use("one")
	c, err := kube.Connect(kube.Access{KubeconfigFile: file}, kube.Options{})
	must(t, err)
	t.Cleanup(c.Close)
	for _, token := range []string{"one", "two", "three"} {
		use(token)
		if rotated, err := c.Rotate(t.Context(), kube.Access{KubeconfigFile: file}, verify); !rotated || err != nil {
			t.Fatalf("%s: got %t, %v", token, rotated, err)
		}
		if got := who(t, c); got != "Bearer "+token {
			t.Errorf("got %s, want %s", got, token)
		}
	}
}
