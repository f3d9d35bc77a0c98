// Package cloudtest has stand-ins for the token services of AWS, Google and Entra ID, which check what they are sent as these do, and a
// webhook by which an API server accepts what they issue.
package cloudtest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
)

// The services answer for these hosts.
const (
	HostSTS         = "sts.eu-west-1.amazonaws.com"
	HostPodIdentity = "169.254.170.23"
	HostMetadata    = "169.254.169.254" // of EC2, Google and Azure
	HostGoogle      = "oauth2.googleapis.com"
	HostGoogleSTS   = "sts.googleapis.com"
	HostIAM         = "iamcredentials.googleapis.com"
	HostEntra       = "login.microsoftonline.com"
)

// Services are all stand-ins, on one port with TLS and one without.
type Services struct {
	AWS    AWS
	Google Google
	Entra  Entra

	authority     *keypairtest.Authority
	secure, plain *httptest.Server
	mu            sync.Mutex
	override      map[string]http.Handler // by host; what tests let a service answer
	asked         map[string]int          // requests by host
	tokens        map[string]string       // who has an access token of Google or Entra ID
}

// Start starts the services for the time of a test.
func Start(t testing.TB) *Services {
	t.Helper()
	s := &Services{authority: keypairtest.New(t), override: map[string]http.Handler{}, asked: map[string]int{}, tokens: map[string]string{}}
	s.AWS.init()
	s.Google.init(t, s)
	s.Entra.init(s)
	s.secure, s.plain = httptest.NewUnstartedServer(s), httptest.NewServer(s)
	pair := s.authority.Issue("services", HostSTS, HostGoogle, HostGoogleSTS, HostIAM, HostEntra)
	certificate, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	s.secure.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	s.secure.StartTLS()
	t.Cleanup(s.secure.Close)
	t.Cleanup(s.plain.Close)
	return s
}

// Transport returns a transport whose requests reach the services, whatever their address is.
func (s *Services) Transport() *http.Transport {
	return &http.Transport{
		TLSClientConfig:       &tls.Config{RootCAs: s.authority.Pool},
		ResponseHeaderTimeout: time.Minute,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err //nolint:wrapcheck // it names the address
			}
			listener := s.plain.Listener
			if port == "443" {
				listener = s.secure.Listener
			}
			return (&net.Dialer{}).DialContext(ctx, network, listener.Addr().String())
		},
	}
}

// Answer lets a host answer something else; nil for the usual.
func (s *Services) Answer(host string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.override, host)
	if h != nil {
		s.override[host] = h
	}
}

// Asked returns how many requests a host has got.
func (s *Services) Asked(host string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[host]
}

// ServeHTTP implements http.Handler.
func (s *Services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked[r.Host]++
	h := s.override[r.Host]
	s.mu.Unlock()
	if h != nil {
		h.ServeHTTP(w, r)
		return
	}
	s.Usual(w, r)
}

// Usual answers as if nothing else had been set by Answer.
func (s *Services) Usual(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Host == HostSTS:
		s.AWS.serveSTS(w, r)
	case r.Host == HostPodIdentity:
		s.AWS.servePodIdentity(w, r)
	case r.Host == HostMetadata && r.Header.Get("Metadata-Flavor") == "Google":
		s.Google.serveMetadata(w, r)
	case r.Host == HostMetadata && r.Header.Get("Metadata") == "true":
		s.Entra.serveMetadata(w, r)
	case r.Host == HostGoogle, r.Host == HostGoogleSTS, r.Host == HostIAM:
		s.Google.serveTokens(w, r)
	case r.Host == HostEntra:
		s.Entra.ServeHTTP(w, r)
	default:
		http.Error(w, "no service has this address", http.StatusNotFound)
	}
}

// issue notes whose token was issued.
func (s *Services) issue(token, user string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token] = user
	return token
}

func (s *Services) userOf(token string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens[token]
}

// UserOf returns whose a token is that is sent to a cluster; empty if it is not valid there. Tokens of Google and Entra ID must have been
// issued. Those of EKS are verified as its authenticator does: by sending the request in them.
func (s *Services) UserOf(ctx context.Context, cluster, token string) string {
	if user := s.userOf(token); user != "" {
		return user
	}
	return s.AWS.userOf(ctx, s.Transport(), cluster, token)
}

// Webhook starts a webhook for tokens, and returns the file for the API server's flag --authentication-token-webhook-config-file. It
// accepts the tokens of admins, who are in the group system:masters.
func (s *Services) Webhook(t testing.TB, cluster string, admins ...string) string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Spec struct{ Token string } `json:"spec"`
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		user := s.UserOf(r.Context(), cluster, review.Spec.Token)
		status := map[string]any{"authenticated": slices.Contains(admins, user)}
		if slices.Contains(admins, user) {
			status["user"] = map[string]any{"username": user, "groups": []string{"system:masters"}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status})
	}))
	t.Cleanup(server.Close)
	ca := WriteFile(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	return WriteFile(t, "webhook.yml", "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"+
		"users: [{name: a, user: {}}]\nclusters: [{name: a, cluster: {server: '"+server.URL+"', certificate-authority: '"+ca+"'}}]\n")
}

// WriteFile writes a file, and returns its path.
func WriteFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// CAFile is a file with the authority of the services.
func (s *Services) CAFile() string { return s.authority.File }

// Proxy starts an HTTP proxy whose tunnels all lead to the services, and returns its URL.
func (s *Services) Proxy(t testing.TB) string {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "this proxy has tunnels only", http.StatusMethodNotAllowed)
			return
		}
		upstream, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", s.secure.Listener.Addr().String())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer upstream.Close()
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		fmt.Fprint(client, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(upstream, client) // ends with the connections, which are closed next
			upstream.Close()
		}()
		_, _ = io.Copy(client, upstream)
	}))
	t.Cleanup(proxy.CloseClientConnections)
	t.Cleanup(proxy.Close)
	return proxy.URL
}
