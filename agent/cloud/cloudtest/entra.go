package cloudtest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Entra is Entra ID, and the metadata service of Azure.
type Entra struct {
	Tenant         string
	ClientID       string // of the application, and of the managed identity
	ClientSecret   string
	FederatedToken string // of the pod
	ServerID       string // that tokens must be for
	TokenEndpoint  string // that the configuration names; empty for the usual one
	Lifetime       time.Duration

	services    *Services
	certificate *x509.Certificate // of the application; nil if it has none
}

func (e *Entra) init(s *Services) {
	e.Tenant, e.ClientID = "11111111-2222-3333-4444-555555555555", "99999999-8888-7777-6666-555555555555"
	e.ClientSecret = "client-secret-of-the-agent"
	e.FederatedToken, e.ServerID = "federated.secret-token.signature", "6dae42f8-4368-4678-94ff-3960e28e3630"
	e.Lifetime = time.Hour
	e.services = s
}

// CertificateFile creates a certificate of the application with its key, and returns the file.
func (e *Entra) CertificateFile(t testing.TB) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "agent"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if e.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return WriteFile(t, "client.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))+
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
}

func (e *Entra) newToken() string {
	return e.services.issue("eyJ0eXAi."+rand.Text()+".sig", e.ClientID)
}

func (e *Entra) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (e *Entra) serveMetadata(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	isOurs := q.Get("client_id") == "" || q.Get("client_id") == e.ClientID
	if r.URL.Path != "/metadata/identity/oauth2/token" || q.Get("resource") != e.ServerID || !isOurs {
		e.answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_request", "error_description": "Identity not found"})
		return
	}
	until := time.Now().Add(e.Lifetime).Unix()
	e.answer(w, http.StatusOK, map[string]string{"access_token": e.newToken(), "expires_in": strconv.Itoa(int(e.Lifetime.Seconds())),
		"expires_on": strconv.FormatInt(until, 10), "resource": e.ServerID, "token_type": "Bearer"})
}

// ServeHTTP is Entra ID.
func (e *Entra) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	base := "https://" + HostEntra + "/" + e.Tenant
	switch {
	case r.URL.Path == "/"+e.Tenant+"/v2.0/.well-known/openid-configuration":
		endpoint := e.TokenEndpoint
		if endpoint == "" {
			endpoint = base + "/oauth2/v2.0/token"
		}
		e.answer(w, http.StatusOK, map[string]string{"issuer": base + "/v2.0", "token_endpoint": endpoint,
			"authorization_endpoint": base + "/oauth2/v2.0/authorize"})
	case r.URL.Path != "/"+e.Tenant+"/oauth2/v2.0/token":
		e.answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_tenant", "error_description": "AADSTS90002: Tenant not found."})
	case !e.isClient(r):
		got := r.PostFormValue("client_assertion") + r.PostFormValue("client_secret")
		e.answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client",
			"error_description": "AADSTS700016: Application was not found; got " + got})
	default:
		e.answer(w, http.StatusOK, map[string]any{"access_token": e.newToken(), "expires_in": int(e.Lifetime.Seconds()), "token_type": "Bearer"})
	}
}

func (e *Entra) isClient(r *http.Request) bool {
	if r.PostFormValue("client_id") != e.ClientID || !strings.HasPrefix(r.PostFormValue("scope"), e.ServerID+"/.default") {
		return false
	}
	assertion := r.PostFormValue("client_assertion")
	return r.PostFormValue("client_secret") == e.ClientSecret || assertion == e.FederatedToken || e.hasSigned(assertion)
}

// hasSigned reports whether the application's certificate has signed an assertion.
func (e *Entra) hasSigned(assertion string) bool {
	parts := strings.Split(assertion, ".")
	if e.certificate == nil || len(parts) != 3 {
		return false
	}
	var header struct{ Alg string }
	decoded, _ := base64.RawURLEncoding.DecodeString(parts[0])
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	algorithm := map[string]x509.SignatureAlgorithm{"PS256": x509.SHA256WithRSAPSS, "RS256": x509.SHA256WithRSA}
	return json.Unmarshal(decoded, &header) == nil &&
		e.certificate.CheckSignature(algorithm[header.Alg], []byte(parts[0]+"."+parts[1]), signature) == nil
}
