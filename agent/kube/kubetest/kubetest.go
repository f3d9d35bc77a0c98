// Package kubetest provides API servers for tests: HTTP servers with TLS and HTTP/2,
// and clients of them.
package kubetest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/vedette-io/vedette/agent/kube"
)

type connKey struct{}

// NewServer returns a server with TLS and HTTP/2 that ends with the test.
func NewServer(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// Conn returns the connection of a request to a server of NewServer.
func Conn(r *http.Request) (net.Conn, bool) {
	conn, ok := r.Context().Value(connKey{}).(net.Conn)
	return conn, ok
}

// Connect returns a client of a server of NewServer. It is closed with the test.
func Connect(t testing.TB, server *httptest.Server, opts kube.Options) *kube.Cluster {
	t.Helper()
	return ConnectWith(t, Kubeconfig(server.URL, CertPEM(server)), opts)
}

// ConnectWith returns a client that uses the given kubeconfig. It is closed with the test.
func ConnectWith(t testing.TB, kubeconfig []byte, opts kube.Options) *kube.Cluster {
	t.Helper()
	c, err := kube.Connect(kube.Access{KubeconfigContents: kubeconfig}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Kubeconfig returns a kubeconfig with one context and the token "t". The CA may be nil.
func Kubeconfig(url string, ca []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n")
	fmt.Fprintf(&b, "users: [{name: a, user: {token: t}}]\nclusters:\n- name: a\n  cluster:\n    server: %s\n", url)
	if len(ca) > 0 {
		fmt.Fprintf(&b, "    certificate-authority-data: %s\n", base64.StdEncoding.EncodeToString(ca))
	}
	return b.Bytes()
}

// CertPEM returns the certificate of a server, which is its own CA.
func CertPEM(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// Hang writes body and then nothing until the request ends.
func Hang(w http.ResponseWriter, r *http.Request, body string) {
	fmt.Fprint(w, body)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}
