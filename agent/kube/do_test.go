package kube_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/tcpserver"
)

// TestMayHaveBeenSent checks which errors mean that a request cannot have reached the API
// server.
func TestMayHaveBeenSent(t *testing.T) {
	broken := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	cert, ca := certificate(t, "kube", time.Now().Add(time.Hour), net.IPv4(127, 0, 0, 1))
	serveTLS(t, broken, cert)
	for name, tt := range map[string]struct {
		url  string
		sent bool
	}{
		"answered by a broken connection":        {broken.URL, true},
		"nothing listens":                        {"https://" + ports.Unused(t), false},
		"closed before TLS":                      {acceptAndClose(t, func(*net.TCPConn) {}), false},
		"reset before TLS":                       {acceptAndClose(t, func(c *net.TCPConn) { _ = c.SetLinger(0) }), false},
		"plain HTTP instead of TLS":              {acceptAndClose(t, func(c *net.TCPConn) { _, _ = c.Write([]byte("HTTP/1.1 503 \r\n\r\n")) }), false},
		"no server behind the load balancer yet": {acceptAndClose(t, func(c *net.TCPConn) { _, _ = c.Read(make([]byte, 64)) }), false},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := kube.Connect(kube.Access{KubeconfigContents: kubetest.Kubeconfig(tt.url, ca)}, kube.Options{})
			must(t, err)
			defer c.Close()
			for _, wiped := range []bool{false, true} {
				resp, err := c.Do(t.Context(), kube.Request{Method: http.MethodPost, Path: "/api/v1/namespaces", Body: []byte("{}"), WipeBuffers: wiped})
				if err == nil {
					resp.Body.Close()
					t.Fatal("got a response, want an error")
				}
				if kube.MayHaveBeenSent(err) != tt.sent {
					t.Errorf("wiped %v: got sent %v, want %v: %v", wiped, !tt.sent, tt.sent, err)
				}
			}
		})
	}
}

// TestLargeResponseHeaderIsRejected responds to a request for Secrets with a header of two
// megabytes.
func TestLargeResponseHeaderIsRejected(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Long", strings.Repeat("a", 2<<20))
	}))
	cert, ca := certificate(t, "kube", time.Now().Add(time.Hour), net.IPv4(127, 0, 0, 1))
	serveTLS(t, server, cert)
	c, err := kube.Connect(kube.Access{KubeconfigContents: kubetest.Kubeconfig(server.URL, ca)}, kube.Options{})
	must(t, err)
	defer c.Close()
	resp, err := c.Do(t.Context(), kube.Request{Path: "/api/v1/secrets", WipeBuffers: true})
	if err == nil {
		resp.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "the response header is longer than 1048576 bytes") {
		t.Errorf("got error %v, want one about the response header", err)
	}
}

// acceptAndClose returns an address whose connections are passed to handle and closed.
func acceptAndClose(t *testing.T, handle func(*net.TCPConn)) string {
	t.Helper()
	return "https://" + tcpserver.New(t, func(conn net.Conn) { handle(conn.(*net.TCPConn)) })
}
