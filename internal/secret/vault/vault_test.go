package vault_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret"
	"github.com/vedette-io/vedette/internal/secret/secrettest"
	"github.com/vedette-io/vedette/internal/secret/vault"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/vaultserver"
)

const policy = `
path "kv1/*" { capabilities = ["read"] }
path "team/kv2/data/*" { capabilities = ["read"] }
path "team/kv2/data/forbidden" { capabilities = ["deny"] }`

// newServer returns a Vault with engines of both versions and a user who may read them.
func newServer(t *testing.T) *vaultserver.Server {
	t.Helper()
	s := vaultserver.New(t)
	s.Write(t, "sys/mounts/kv1", map[string]any{"type": "kv", "options": map[string]any{"version": "1"}})
	s.Write(t, "sys/mounts/team/kv2", map[string]any{"type": "kv", "options": map[string]any{"version": "2"}})
	s.Write(t, "sys/policies/acl/reader", map[string]any{"policy": policy})
	s.Write(t, "sys/auth/userpass", map[string]any{"type": "userpass"})
	s.Write(t, "auth/userpass/users/agent", map[string]any{"password": "hunter2", "token_policies": "reader"})
	data := map[string]any{"password": "v1", "text": "not base64!", "number": 5432, "file": base64.StdEncoding.EncodeToString([]byte("v1\n"))}
	s.Write(t, "kv1/spinnaker/db", data)
	s.Write(t, "kv1/data/spinnaker/db", map[string]any{"password": "another secret"})
	// An engine of version 2 is upgraded in the background.
	for {
		_, err := s.Root.Logical().WriteWithContext(t.Context(), "team/kv2/data/spinnaker/db", map[string]any{"data": map[string]any{"password": "v2", "a": map[string]any{"b": 1}}})
		if err == nil {
			break
		}
		if t.Context().Err() != nil || !strings.Contains(err.Error(), "Upgrading") {
			t.Fatal(err)
		}
	}
	s.Write(t, "team/kv2/data/gone", map[string]any{"data": map[string]any{"password": "v2"}})
	if _, err := s.Root.Logical().DeleteWithContext(t.Context(), "team/kv2/data/gone"); err != nil {
		t.Fatal(err)
	}
	s.Write(t, "team/kv2/data/forbidden", map[string]any{"data": map[string]any{"password": "v2"}})
	return s
}

func userpass(address string) vault.Config {
	return vault.Config{URL: address, Method: "userpass", Username: "agent", Password: configfile.NewSecret("hunter2")}
}

// newResolver returns a resolver with an engine that is closed with the test.
func newResolver(t *testing.T, cfg vault.Config, timing secret.Timing) *secret.Resolver {
	t.Helper()
	r := secret.New(map[string]secret.Engine{"vault": vault.New(cfg)}, timing)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func expect(t *testing.T, r *secret.Resolver, reference, want string) {
	t.Helper()
	if got, err := r.Load(t.Context()).Resolve(reference); got != want || err != nil {
		t.Errorf("%s: got %q, %v, want %q", reference, got, err, want)
	}
}

const (
	version1Password = "encrypted:vault!e:kv1!p:spinnaker/db!k:password"
	version2Password = "encrypted:vault!e:team/kv2!p:spinnaker/db!k:password"
)

func TestBothVersionsOfKV(t *testing.T) {
	r := newResolver(t, userpass(newServer(t).URL), secret.Timing{})
	for range 2 { // the second time, the versions are known
		for reference, want := range map[string]string{
			version1Password: "v1", version2Password: "v2",
			"encrypted:vault!e:kv1!n:spinnaker/db!k:password":         "v1",
			"encrypted:vault!e:/kv1/!p:/spinnaker/db!k:number":        "5432",
			"encrypted:vault!e:kv1!p:spinnaker/db!k:file!b:true":      "v1\n",
			"encrypted:vault!e:kv1!p:spinnaker/db!k:password!b:":      "v1",
			"encrypted:vault!e:team/kv2!p:spinnaker/db!k:a!b:false":   `{"b":1}`,
			"encrypted:vault!e:kv1!p:data/spinnaker/db!k:password":    "another secret",
			"encrypted:vault!b:false!k:password!p:spinnaker/db!e:kv1": "v1",
		} {
			expect(t, r, reference, want)
		}
		if _, err := r.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
	}
	l := r.Load(t.Context())
	secrettest.ExpectErrors(t, l, "encrypted:vault!", map[string]struct {
		Kind vedette.ErrorKind
		Text string
	}{
		"e:kv1!p:spinnaker/db!k:user":        {vedette.NotFound, `no key "user"`},
		"e:kv1!p:spinnaker/db!k:text!b:true": {vedette.Invalid, "not base64"},
		"e:kv1!p:missing!k:password":         {vedette.NotFound, "has no secret missing in the engine kv1"},
		"e:team/kv2!p:gone!k:password":       {vedette.NotFound, "the newest version of gone in the engine team/kv2 was deleted"},
		"e:team/kv2!p:forbidden!k:password":  {vedette.Denied, "permission denied: allow it in the policy"},
		"e:unknown!p:x!k:password":           {vedette.Denied, "permission denied"},
		"e:kv1!k:password":                   {vedette.Invalid, "must have a path"},
		"e:kv1!p:a!n:b!k:password":           {vedette.Invalid, "must have a path, once"},
		"e:kv1!p:a!k:password!b:perhaps":     {vedette.Invalid, "another value of b"},
		"p:a!k:password":                     {vedette.Invalid, "lacks the parameter e"},
	})
}

// TestMissingSecretOfUnknownVersion checks that a missing secret is not called a denied one, although the
// policy denies its path in an engine of the other version.
func TestMissingSecretOfUnknownVersion(t *testing.T) {
	r := newResolver(t, userpass(newServer(t).URL), secret.Timing{})
	_, err := r.Load(t.Context()).Resolve("encrypted:vault!e:team/kv2!p:spinnaker/none!k:password")
	const want = "has no secret spinnaker/none in the engine team/kv2: there is nothing at team/kv2/data/spinnaker/none (read team/kv2/spinnaker/none: "
	if vedette.KindOf(err) != vedette.NotFound || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %q", err, want)
	}
}

func TestEachMethodLogsIn(t *testing.T) {
	s := newServer(t)
	s.Write(t, "sys/auth/approle", map[string]any{"type": "approle"})
	s.Write(t, "auth/approle/role/agent", map[string]any{"token_policies": "reader"})
	roleID, err := s.Root.Logical().ReadWithContext(t.Context(), "auth/approle/role/agent/role-id")
	if err != nil {
		t.Fatal(err)
	}
	secretID := s.Write(t, "auth/approle/role/agent/secret-id", nil)
	token := s.Write(t, "auth/token/create", map[string]any{"policies": []string{"reader"}, "ttl": "1h"})
	s.Write(t, "sys/auth/people", map[string]any{"type": "userpass"})
	s.Write(t, "auth/people/users/agent", map[string]any{"password": "hunter3", "token_policies": "reader"})
	for name, cfg := range map[string]vault.Config{
		"AppRole":             {Method: vault.AppRole, RoleID: roleID.Data["role_id"].(string), SecretID: configfile.NewSecret(secretID.Data["secret_id"].(string))},
		"token":               {Method: "token", Token: configfile.NewSecret(token.Auth.ClientToken)},
		"token without limit": {Method: vault.Token, Token: configfile.NewSecret(s.Token)},
		"other path":          {Method: vault.UserPass, Path: "people", Username: "agent", Password: configfile.NewSecret("hunter3")},
	} {
		cfg.URL = s.URL
		r := newResolver(t, cfg, secret.Timing{})
		t.Run(name, func(t *testing.T) { expect(t, r, version1Password, "v1") })
	}
	for want, cfg := range map[string]vault.Config{
		"log in at Vault by auth/approle/login":        {Method: vault.AppRole, RoleID: "x", SecretID: configfile.NewSecret("hunter2")},
		"log in at Vault by auth/userpass/login/agent": {Method: vault.UserPass, Username: "agent", Password: configfile.NewSecret("hunter9")},
		"permission denied":                            {Method: vault.Token, Token: configfile.NewSecret("hunter2")},
		"log in at Vault as the pod's service account": {Method: vault.Kubernetes, JWTFile: filepath.Join(t.TempDir(), "token")},
		"is not a method":                              {Method: "CERT"},
	} {
		cfg.URL = s.URL
		_, err := newResolver(t, cfg, secret.Timing{}).Load(t.Context()).Resolve(version1Password)
		if err == nil || !strings.HasPrefix(err.Error(), version1Password) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}

// TestVaultReviewsTheKubernetesToken logs in with a token that a real API server has issued, and that Vault lets it
// review.
func TestVaultReviewsTheKubernetesToken(t *testing.T) {
	plane := controlplane.New(t, controlplane.Options{})
	for _, name := range []string{"agent", "reviewer"} {
		err := plane.Create(t.Context(), "/api/v1/namespaces/default/serviceaccounts", controlplane.Object{"metadata": controlplane.Object{"name": name}})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := plane.Create(t.Context(), "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", controlplane.Object{"metadata": controlplane.Object{"name": "reviewer"},
		"roleRef":  controlplane.Object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:auth-delegator"},
		"subjects": []controlplane.Object{{"kind": "ServiceAccount", "name": "reviewer", "namespace": "default"}}})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	s.Write(t, "sys/auth/cluster", map[string]any{"type": "kubernetes"})
	ca, err := os.ReadFile(plane.CA())
	if err != nil {
		t.Fatal(err)
	}
	s.Write(t, "auth/cluster/config", map[string]any{"kubernetes_host": plane.URL, "kubernetes_ca_cert": string(ca),
		"token_reviewer_jwt": serviceAccountToken(t, plane, "reviewer"), "disable_local_ca_jwt": true})
	s.Write(t, "auth/cluster/role/agent", map[string]any{"bound_service_account_names": "agent", "bound_service_account_namespaces": "default", "token_policies": "reader"})
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(serviceAccountToken(t, plane, "agent")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := vault.Config{URL: s.URL, Method: vault.Kubernetes, Path: "cluster", Role: "agent", JWTFile: file}
	expect(t, newResolver(t, cfg, secret.Timing{}), version2Password, "v2")
	cfg.Role = "other"
	if _, err := newResolver(t, cfg, secret.Timing{}).Load(t.Context()).Resolve(version2Password); err == nil || !strings.Contains(err.Error(), "auth/cluster/login") {
		t.Errorf("a role that does not exist: got error %v", err)
	}
}

func serviceAccountToken(t *testing.T, plane *controlplane.Plane, name string) string {
	t.Helper()
	token, err := plane.ServiceAccountToken(t.Context(), "default", name)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestRevokedTokenLeadsToALogin checks that the engine logs in again when Vault does not know its token any more.
func TestRevokedTokenLeadsToALogin(t *testing.T) {
	s := newServer(t)
	r := newResolver(t, userpass(s.URL), secret.Timing{})
	expect(t, r, version1Password, "v1")
	s.Write(t, "sys/leases/revoke-prefix/auth/userpass/login", nil)
	s.Write(t, "kv1/spinnaker/db", map[string]any{"password": "rotated"})
	if changed, err := r.Refresh(t.Context()); err != nil || len(changed) != 1 {
		t.Errorf("got %q, %v, want that the password has changed", changed, err)
	}
	expect(t, r, version1Password, "rotated")
}

// TestTokenIsRenewed waits until Vault has extended a token that would not live long. A token that
// expired, because the machine was too slow to renew it, is followed by one that lives longer.
func TestTokenIsRenewed(t *testing.T) {
	for ttl := 3 * time.Second; !isRenewed(t, ttl); ttl *= 3 {
		if ttl > time.Minute {
			t.Fatalf("a token expired that lived for %v", ttl)
		}
	}
}

// isRenewed reports whether a token is renewed before it expires.
func isRenewed(t *testing.T, ttl time.Duration) bool {
	t.Helper()
	s := newServer(t)
	s.Write(t, "auth/userpass/users/agent", map[string]any{"password": "hunter2", "token_policies": "reader", "token_ttl": ttl.String(), "token_max_ttl": "1h"})
	r := newResolver(t, userpass(s.URL), secret.Timing{})
	expect(t, r, version1Password, "v1")
	accessor, first := onlyUserToken(t, s)
	for last := first; !last.After(first.Add(time.Second)); {
		answer, err := s.Root.Logical().WriteWithContext(t.Context(), "auth/token/lookup-accessor", map[string]any{"accessor": accessor})
		if err != nil {
			t.Logf("look up the token: %v", err)
			return false
		}
		last = expireTime(t, answer.Data)
	}
	return true
}

// onlyUserToken returns the accessor of the only token of userpass, and when it expires.
func onlyUserToken(t *testing.T, s *vaultserver.Server) (string, time.Time) {
	t.Helper()
	list, err := s.Root.Logical().ListWithContext(t.Context(), "auth/token/accessors")
	if err != nil {
		t.Fatal(err)
	}
	for _, accessor := range list.Data["keys"].([]any) {
		answer := s.Write(t, "auth/token/lookup-accessor", map[string]any{"accessor": accessor})
		if answer.Data["path"] == "auth/userpass/login/agent" {
			return accessor.(string), expireTime(t, answer.Data)
		}
	}
	t.Fatal("got no token of userpass")
	return "", time.Time{}
}

func expireTime(t *testing.T, data map[string]any) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, data["expire_time"].(string))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestAllRequestsNameTheNamespace checks that all requests name the namespace. Only Vault Enterprise has namespaces, so that a
// proxy removes the name.
func TestAllRequestsNameTheNamespace(t *testing.T) {
	s := newServer(t)
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if got := r.In.Header.Get("X-Vault-Namespace"); strings.Trim(got, "/") != "team/a" {
			t.Errorf("%s: got the namespace %q", r.In.URL.Path, got)
		}
		r.SetURL(target)
		r.Out.Header.Del("X-Vault-Namespace")
	}})
	defer proxy.Close()
	cfg := userpass(proxy.URL)
	cfg.Namespace = "team/a"
	expect(t, newResolver(t, cfg, secret.Timing{}), version2Password, "v2")
}

// TestUnavailableVaultIsAskedAgain checks that a Vault that is sealed, or does not run, is asked again.
func TestUnavailableVaultIsAskedAgain(t *testing.T) {
	s := newServer(t)
	s.Write(t, "sys/seal", nil)
	r := newResolver(t, userpass(s.URL), secret.Timing{Total: 1})
	if _, err := r.Load(t.Context()).Resolve(version1Password); vedette.KindOf(err) != vedette.Unavailable || !strings.Contains(err.Error(), "sealed") {
		t.Errorf("sealed: got error %v", err)
	}
	r = newResolver(t, userpass("http://"+ports.Unused(t)), secret.Timing{Total: 1})
	if _, err := r.Load(t.Context()).Resolve(version1Password); vedette.KindOf(err) != vedette.Unavailable || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("nobody listens: got error %v", err)
	}
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client has left
		<-r.Context().Done()
	}))
	defer hanging.Close()
	r = newResolver(t, userpass(hanging.URL), secret.Timing{Attempt: time.Millisecond, Total: 1})
	if _, err := r.Load(t.Context()).Resolve(version1Password); vedette.KindOf(err) != vedette.Unavailable || !strings.Contains(err.Error(), "no answer within 1ms") {
		t.Errorf("a Vault that hangs: got error %v", err)
	}
}
