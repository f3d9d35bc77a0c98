package apistub

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
)

// Server serves a cluster with TLS and HTTP/2 on a port of 127.0.0.1.
type Server struct{ server *httptest.Server }

// Start serves a cluster until Close.
func Start(c *Cluster) *Server {
	s := &Server{server: httptest.NewUnstartedServer(c)}
	s.server.EnableHTTP2 = true
	s.server.StartTLS()
	return s
}

// URL returns the URL of the API server.
func (s *Server) URL() string { return s.server.URL }

// Client returns a client that trusts the server's certificate.
func (s *Server) Client() *http.Client { return s.server.Client() }

// Close ends all requests, which include watches, and stops the server.
func (s *Server) Close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

// Kubeconfig returns a kubeconfig for the API server.
func (s *Server) Kubeconfig() []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: recorded
contexts: [{name: recorded, context: {cluster: recorded, user: nobody}}]
users: [{name: nobody, user: {token: none}}]
clusters: [{name: recorded, cluster: {server: %q, certificate-authority-data: %s}}]
`, s.URL(), base64.StdEncoding.EncodeToString(ca))
}
