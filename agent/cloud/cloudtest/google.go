package cloudtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Google is the metadata server, the token endpoint, the exchange of tokens of other providers, and the impersonation of service accounts.
type Google struct {
	Scope        string // that tokens must be asked for
	Email        string // of the service account that gets them
	SubjectToken string // of the other provider
	RefreshToken string // of a user
	Lifetime     time.Duration

	services *Services
	key      *rsa.PrivateKey
}

func (g *Google) init(t testing.TB, s *Services) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	g.Scope, g.Email = "https://www.googleapis.com/auth/cloud-platform", "agent@example.iam.gserviceaccount.com"
	g.SubjectToken, g.RefreshToken = "subject-secret-token", "refresh-secret-token"
	g.Lifetime = time.Hour
	g.services, g.key = s, key
}

// KeyFile writes the key of the service account, and returns the file's path.
func (g *Google) KeyFile(t testing.TB) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(g.key)
	if err != nil {
		t.Fatal(err)
	}
	return writeJSON(t, map[string]any{"type": "service_account", "client_email": g.Email, "token_uri": "https://" + HostGoogle + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))})
}

// UserFile writes the credentials of a user, as gcloud auth application-default login does.
func (g *Google) UserFile(t testing.TB) string {
	t.Helper()
	return writeJSON(t, map[string]any{"type": "authorized_user", "client_id": "c", "client_secret": "client-secret",
		"refresh_token": g.RefreshToken})
}

// FederationFile writes a configuration of workload identity federation whose tokens are exchanged for those of the service account.
func (g *Google) FederationFile(t testing.TB) string {
	t.Helper()
	return writeJSON(t, map[string]any{"type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": "https://" + HostGoogleSTS + "/v1/token",
		"credential_source":                 map[string]string{"file": WriteFile(t, "subject", g.SubjectToken)},
		"service_account_impersonation_url": "https://" + HostIAM + "/v1/projects/-/serviceAccounts/" + g.Email + ":generateAccessToken"})
}

func writeJSON(t testing.TB, content any) string {
	t.Helper()
	encoded, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return WriteFile(t, "credentials.json", string(encoded))
}

func (g *Google) newToken() string { return g.services.issue("ya29."+rand.Text(), g.Email) }

func (g *Google) serveMetadata(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Metadata-Flavor", "Google")
	if r.URL.Path != "/computeMetadata/v1/instance/service-accounts/default/token" || r.URL.Query().Get("scopes") != g.Scope {
		http.NotFound(w, r)
		return
	}
	g.answer(w, map[string]any{"access_token": g.newToken(), "expires_in": int(g.Lifetime.Seconds()), "token_type": "Bearer"})
}

func (g *Google) answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func (g *Google) refuse(w http.ResponseWriter, description string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_grant", "error_description": description})
}

func (g *Google) serveTokens(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Host == HostIAM:
		user := g.services.userOf(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		if user != "federated" || !strings.Contains(r.URL.Path, g.Email) {
			g.refuse(w, "got "+r.Header.Get("Authorization"))
			return
		}
		g.answer(w, map[string]any{"accessToken": g.newToken(), "expireTime": time.Now().Add(g.Lifetime).UTC().Format(time.RFC3339)})
		return
	case r.Host == HostGoogleSTS && r.PostFormValue("subject_token") != g.SubjectToken,
		r.Host == HostGoogle && r.PostFormValue("grant_type") == "refresh_token" && r.PostFormValue("refresh_token") != g.RefreshToken,
		r.Host == HostGoogle && r.PostFormValue("grant_type") != "refresh_token" && !g.isAssertion(r.PostFormValue("assertion")):
		g.refuse(w, "got "+r.PostForm.Encode())
		return
	}
	token := g.newToken()
	if r.Host == HostGoogleSTS {
		g.services.issue(token, "federated")
	}
	g.answer(w, map[string]any{"access_token": token, "expires_in": int(g.Lifetime.Seconds()), "token_type": "Bearer",
		"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"})
}

// isAssertion reports whether the service account has signed an assertion with the scope.
func (g *Google) isAssertion(assertion string) bool {
	signed := assertion[:max(0, strings.LastIndex(assertion, "."))]
	_, payload, _ := strings.Cut(signed, ".")
	claims, _ := base64.RawURLEncoding.DecodeString(payload)
	signature, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(assertion, signed+"."))
	digest := sha256.Sum256([]byte(signed))
	var c struct{ Iss, Scope string }
	return rsa.VerifyPKCS1v15(&g.key.PublicKey, crypto.SHA256, digest[:], signature) == nil && json.Unmarshal(claims, &c) == nil &&
		c.Iss == g.Email && c.Scope == g.Scope
}
