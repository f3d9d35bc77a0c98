package gcs_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/bucket"
	"github.com/vedette-io/vedette/internal/secret"
	"github.com/vedette-io/vedette/internal/secret/gcs"
	"github.com/vedette-io/vedette/internal/secret/secrettest"
)

const file = "db:\n  password: hunter2\n"

func newClient() *http.Client {
	return secret.NewHTTPClient(http.DefaultTransport.(*http.Transport).Clone())
}

func TestSecretsAreReadFromGCS(t *testing.T) {
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{
		Scheme: "http", Host: "127.0.0.1", Writer: t.Output(),
		InitialObjects: []fakestorage.Object{{ObjectAttrs: fakestorage.ObjectAttrs{BucketName: "secrets", Name: "spinnaker/db.yml"}, Content: []byte(file)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	l := secret.New(map[string]secret.Engine{"gcs": gcs.New(newClient(), server.URL())}, secret.Timing{}).Load(t.Context())
	secrettest.ExpectValues(t, l, "", map[string]string{
		"encrypted:gcs!b:secrets!f:spinnaker/db.yml!k:db.password": "hunter2",
		"encrypted:gcs!b:secrets!f:spinnaker/db.yml":               file,
	})
	secrettest.ExpectErrors(t, l, "", map[string]struct {
		Kind vedette.ErrorKind
		Text string
	}{
		"encrypted:gcs!b:secrets!f:spinnaker/db.yml!k:db.user": {vedette.NotFound, `has no key "db.user"`},
		"encrypted:gcs!b:secrets":                              {vedette.Invalid, "lacks the parameter f"},
		"encrypted:gcs!b:../x!f:y":                             {vedette.Invalid, "not a valid name of a bucket"},
	})
}

// TestMissingFile checks that only the service says that there is no file. The server in memory answers otherwise than Google.
func TestMissingFile(t *testing.T) {
	secrettest.ExpectNotFound(t, "encrypted:gcs!b:secrets!f:x", "No such object: secrets/x", func(server *httptest.Server) secret.Engine {
		server.Start()
		return gcs.New(newClient(), server.URL)
	})
}

// TestCredentialsOfTheEnvironment checks that Google gets a token of the account that
// GOOGLE_APPLICATION_CREDENTIALS names.
func TestCredentialsOfTheEnvironment(t *testing.T) {
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Count(r.PostFormValue("assertion"), ".") != 2 {
			http.Error(w, "no assertion", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"acc3ss","token_type":"Bearer","expires_in":3600}`)
	}))
	defer tokens.Close()
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", writeAccount(t, tokens.URL))
	var requested *http.Request
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		requested = r
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})}
	l := secret.New(map[string]secret.Engine{"gcs": gcs.New(client, "")}, secret.Timing{}).Load(t.Context())
	if _, err := l.Resolve("encrypted:gcs!b:secrets!f:a/b"); err != nil {
		t.Fatal(err)
	}
	if got := requested.Header.Get("Authorization"); got != "Bearer acc3ss" || !strings.HasPrefix(requested.URL.String(), bucket.DefaultGCSEndpoint) {
		t.Errorf("got %q to %s", got, requested.URL)
	}
}

// TestTokenEndpointThatQuotesTheRequest checks that the error does not repeat what an endpoint quotes.
func TestTokenEndpointThatQuotesTheRequest(t *testing.T) {
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, strings.Repeat("no access for "+r.PostFormValue("assertion"), 100), http.StatusForbidden)
	}))
	defer tokens.Close()
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", writeAccount(t, tokens.URL))
	l := secret.New(map[string]secret.Engine{"gcs": gcs.New(http.DefaultClient, "")}, secret.Timing{Total: 1}).Load(t.Context())
	_, err := l.Resolve("encrypted:gcs!b:secrets!f:a/b")
	if err == nil || strings.Contains(err.Error(), "no access") || !strings.Contains(err.Error(), "403") || len(err.Error()) > 300 {
		t.Errorf("got error %.500v, want the status only", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func writeAccount(t *testing.T, tokenURL string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	account, err := json.Marshal(map[string]string{"type": "service_account", "client_email": "a@example.com", "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": tokenURL})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "account.json")
	if err := os.WriteFile(path, account, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
