//go:build unix

package kube_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/test/controlplane"
)

// kubeconfigOf returns a kubeconfig of a control plane for a user, which is a flow mapping of YAML.
func kubeconfigOf(p *controlplane.Plane, user string) []byte {
	return fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]\nusers: [{name: u, user: %s}]\n", p.URL, p.CA(), user)
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	return string(content)
}

// execUser returns a user with an exec plugin that prints a file.
func execUser(file string) string {
	return fmt.Sprintf("{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: cat, args: [%q]}}", file)
}

func execCredential(t *testing.T, status map[string]string) string {
	t.Helper()
	encoded, err := json.Marshal(map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})
	must(t, err)
	return string(encoded)
}

// TestEachKindOfCredentialsConnects connects to a control plane with each kind of credentials. Only the
// administrator may read kube-system, so its uid shows that the credentials were used.
func TestEachKindOfCredentialsConnects(t *testing.T) {
	p := controlplane.New(t, controlplane.Options{})
	google := newTokenEndpoint(t, p.AdminToken)
	key := google.serviceAccount(t, "agent@example.iam.gserviceaccount.com")
	pair := map[string]string{"clientCertificateData": readFile(t, p.ClientCert()), "clientKeyData": readFile(t, p.ClientKey())}
	inCluster := t.TempDir()
	must(t, os.WriteFile(filepath.Join(inCluster, "token"), []byte(p.AdminToken), 0o600))
	must(t, os.WriteFile(filepath.Join(inCluster, "ca.crt"), []byte(readFile(t, p.CA())), 0o600))
	host, port, _ := strings.Cut(strings.TrimPrefix(p.URL, "https://"), ":")
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", key)
	token := "{token: " + p.AdminToken + "}"
	contents := func(user string) kube.Access { return kube.Access{KubeconfigContents: kubeconfigOf(p, user)} }
	with := func(a kube.Access, change func(*kube.Access)) kube.Access { change(&a); return a }
	const scope = "https://example.com/scope"
	for name, access := range map[string]kube.Access{
		"a token":              contents(token),
		"a token file":         contents("{tokenFile: " + writeFile(t, "token", p.AdminToken+"\n") + "}"),
		"a client certificate": contents(fmt.Sprintf("{client-certificate: %q, client-key: %q}", p.ClientCert(), p.ClientKey())),
		"an exec plugin with a token": contents(execUser(writeFile(t, "credential",
			execCredential(t, map[string]string{"token": p.AdminToken})))),
		"an exec plugin whose clock is behind": contents(execUser(writeFile(t, "credential",
			execCredential(t, map[string]string{"token": p.AdminToken, "expirationTimestamp": "2001-01-01T00:00:00Z"})))),
		"an exec plugin with a certificate": contents(execUser(writeFile(t, "credential", execCredential(t, pair)))),
		"a service account":                 {InCluster: true, ServiceAccountDir: inCluster},
		"a service account and a kubeconfig": {InCluster: true, ServiceAccountDir: inCluster,
			KubeconfigContents: kubeconfigOf(p, "{token: wrong}")},
		"insecure": with(kube.Access{KubeconfigContents: bytes.Replace(kubeconfigOf(p, token), []byte(p.CA()), []byte(p.ClientCert()), 1)},
			func(a *kube.Access) { a.Insecure = true }),
		"a key of Google": with(contents("{token: wrong}"), func(a *kube.Access) { a.OAuthServiceAccount = key; a.OAuthScopes = []string{scope} }),
		"a key of Google in place of a plugin that is not installed": with(
			contents("{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: no-such-plugin}}"),
			func(a *kube.Access) { a.OAuthServiceAccount = key }),
		"Google's credentials of the environment": with(contents("{}"), func(a *kube.Access) { a.OAuthScopes = []string{scope} }),
		"the provider gcp":                        with(contents("{auth-provider: {name: gcp}}"), func(a *kube.Access) { a.OAuthScopes = []string{scope} }),
		"scopes with other credentials":           with(contents(token), func(a *kube.Access) { a.OAuthScopes = []string{scope} }),
	} {
		c, err := kube.Connect(access, kube.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if id, _, err := c.Identify(t.Context()); err != nil || id.UID == "" {
			t.Errorf("%s: got %+v, %v, want the uid of kube-system", name, id, err)
		}
		c.Close()
	}
	if got := google.scopes.Load(); *got != scope && *got != "https://www.googleapis.com/auth/cloud-platform" {
		t.Errorf("got scopes %q", *got)
	}
}

// TestTokenFileIsReadAgain checks that a token that was replaced in its file is used without a new
// Cluster, after the API server has rejected the old one.
func TestTokenFileIsReadAgain(t *testing.T) {
	p := controlplane.New(t, controlplane.Options{})
	file := writeFile(t, "token", "wrong")
	c, err := kube.Connect(kube.Access{KubeconfigContents: kubeconfigOf(p, "{tokenFile: "+file+"}")}, kube.Options{})
	must(t, err)
	t.Cleanup(c.Close)
	status := func() int {
		resp, err := c.Do(t.Context(), kube.Request{Path: "/api/v1/namespaces/kube-system"})
		must(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := status(); got != http.StatusUnauthorized {
		t.Fatalf("got status %d, want %d", got, http.StatusUnauthorized)
	}
	must(t, os.WriteFile(file, []byte(p.AdminToken), 0o600))
	ticker, deadline := time.NewTicker(100*time.Millisecond), time.After(time.Minute)
	defer ticker.Stop()
	for status() != http.StatusOK {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatal("the new token was not used within a minute")
		}
	}
}

// TestBadKeysOfGoogle checks the errors of keys and token endpoints, which must not quote the key.
func TestBadKeysOfGoogle(t *testing.T) {
	google := newTokenEndpoint(t, "unused")
	good := readFile(t, google.serviceAccount(t, "agent@example.com"))
	stranger := strings.Replace(good, "agent@example.com", "stranger@example.com", 1)
	for name, tt := range map[string]struct {
		key, want string
		kind      vedette.ErrorKind
	}{
		"not JSON":            {"secret", "is not the key of a service account", vedette.Invalid},
		"another kind":        {`{"type": "authorized_user", "refresh_token": "secret"}`, "is not the key of a service account", vedette.Invalid},
		"half a key":          {`{"type": "service_account", "client_email": "secret"}`, "is not the key of a service account", vedette.Invalid},
		"a key that is none":  {`{"type": "service_account", "client_email": "a", "private_key": "secret", "token_uri": "` + google.url + `"}`, "there are no credentials for", vedette.Denied},
		"a rejected account":  {stranger, "answered 400 Bad Request, invalid_grant: no such account: see docs/cloud-gke.md", vedette.Denied},
		"no such endpoint":    {strings.Replace(good, google.url, "http://no-such-host.invalid/token", 1), "the name of Google (no-such-host.invalid) cannot be resolved", vedette.Denied},
		"a quoted request":    {strings.Replace(good, google.url, google.url+"/quote", 1), "answered 403 Forbidden: see docs/cloud-gke.md", vedette.Denied},
		"an endpoint of HTML": {strings.Replace(good, google.url, google.url+"/html", 1), "answered 200 OK with an HTML page", vedette.Denied},
	} {
		c, err := kube.Connect(kube.Access{KubeconfigContents: fmt.Appendf(nil, oneContext, "", ""), OAuthServiceAccount: writeFile(t, "key", tt.key)}, kube.Options{})
		if err == nil {
			_, _, err = c.Identify(t.Context())
			c.Close()
		}
		if vedette.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %q error %v, want %q error %q", name, vedette.KindOf(err), err, tt.kind, tt.want)
		}
	}
}

// tokenEndpoint issues a token for the assertion that a service account signed, as Google does.
type tokenEndpoint struct {
	url    string
	key    *rsa.PrivateKey
	token  string
	scopes atomic.Pointer[string] // of the last request
}

func newTokenEndpoint(t *testing.T, token string) *tokenEndpoint {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	e := &tokenEndpoint{key: key, token: token}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	e.url = server.URL + "/token"
	return e
}

// serviceAccount writes the key of a service account to a file, and returns its path.
func (e *tokenEndpoint) serviceAccount(t *testing.T, email string) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(e.key)
	must(t, err)
	encoded, err := json.Marshal(map[string]string{"type": "service_account", "client_email": email, "token_uri": e.url,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))})
	must(t, err)
	return writeFile(t, "key.json", string(encoded))
}

// ServeHTTP verifies the signature of an assertion.
func (e *tokenEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/html") {
		fmt.Fprint(w, "<html>sign in</html>")
		return
	}
	if strings.HasSuffix(r.URL.Path, "/quote") {
		http.Error(w, "denied: refresh_token=secret", http.StatusForbidden)
		return
	}
	assertion := r.PostFormValue("assertion")
	signed := assertion[:max(0, strings.LastIndex(assertion, "."))]
	_, payload, _ := strings.Cut(signed, ".")
	claims, _ := base64.RawURLEncoding.DecodeString(payload)
	signature, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(assertion, signed+"."))
	digest := sha256.Sum256([]byte(signed))
	var c struct{ Iss, Scope, Aud string }
	if rsa.VerifyPKCS1v15(&e.key.PublicKey, crypto.SHA256, digest[:], signature) != nil || json.Unmarshal(claims, &c) != nil ||
		c.Aud != e.url || strings.HasPrefix(c.Iss, "stranger") {
		http.Error(w, `{"error": "invalid_grant", "error_description": "no such account"}`, http.StatusBadRequest)
		return
	}
	e.scopes.Store(&c.Scope)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": e.token, "expires_in": 3600, "token_type": "Bearer"})
}

// TestHungTokenEndpoint checks that an endpoint that never answers blocks neither a canceled request
// nor Close.
func TestHungTokenEndpoint(t *testing.T) {
	google := newTokenEndpoint(t, "unused")
	asked, answer := make(chan struct{}), make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		select {
		case <-r.Context().Done():
		case <-answer:
		}
	}))
	t.Cleanup(hung.Close)
	t.Cleanup(func() { close(answer) })
	google.url = hung.URL
	c, err := kube.Connect(kube.Access{KubeconfigContents: fmt.Appendf(nil, oneContext, "", ""),
		OAuthServiceAccount: google.serviceAccount(t, "agent@example.com")}, kube.Options{})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, _, err := c.Identify(ctx); err == nil {
		t.Error("canceled request: got no error, want one")
	}
	c.Close() // waits until nobody asks anymore
}

// TestWrongClockIsNamed checks that the error of rejected credentials says how far this machine's
// clock is off.
func TestWrongClockIsNamed(t *testing.T) {
	for ahead, want := range map[time.Duration]string{
		3 * time.Hour:  "this machine's clock is 3h0m0s ahead of the API server's: set the clock",
		-3 * time.Hour: "this machine's clock is 3h0m0s behind the API server's: set the clock",
		0:              "the token or certificate has expired",
	} {
		server := kubetest.NewServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(-ahead).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusUnauthorized)
		})
		_, _, err := kubetest.Connect(t, server, kube.Options{}).Identify(t.Context())
		if vedette.KindOf(err) != vedette.Denied || !strings.Contains(err.Error(), want) {
			t.Errorf("%v ahead: got error %v, want %q", ahead, err, want)
		}
	}
}
