package vault_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret"
	"github.com/vedette-io/vedette/internal/secret/secrettest"
	"github.com/vedette-io/vedette/internal/secret/vault"
)

// serve starts a server that is not Vault.
func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL
}

// TestEndlessAnswersAreNotRead checks that answers without an end are not read into memory: neither secrets nor
// errors.
func TestEndlessAnswersAreNotRead(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusForbidden} {
		sent := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			sent = secrettest.WriteEndless(w, `{"data":{"x":"`)
		}))
		r := newResolver(t, vault.Config{URL: s.URL, Method: vault.AppRole, RoleID: "role", SecretID: configfile.NewSecret("hunter2")}, secret.Timing{})
		_, err := r.Load(t.Context()).Resolve(version1Password)
		s.Close() // waits for the handler
		secrettest.ExpectTooLarge(t, sent, err)
	}
}

// TestErrorsDoNotQuoteCredentials checks that errors do not show what a server quotes of a request, and
// not much of anything else.
func TestErrorsDoNotQuoteCredentials(t *testing.T) {
	quote := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/v1/auth/approle/login" && strings.Contains(string(body), "good") {
			fmt.Fprint(w, `{"auth":{"client_token":"hvs.t0ken-of-the-login"}}`)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "<html>cannot handle %s with %v and %q\n%s", r.URL, r.Header, body, strings.Repeat("a page ", 1000))
	}
	for _, cfg := range []vault.Config{
		{Method: vault.UserPass, Username: "agent", Password: configfile.NewSecret("hunter2-of-the-agent")},
		{Method: vault.AppRole, RoleID: "role", SecretID: configfile.NewSecret("s3cret-id-of-the-role")},
		{Method: vault.AppRole, RoleID: "good", SecretID: configfile.NewSecret("s3cret-id-of-the-role")},
		{Method: vault.Token, Token: configfile.NewSecret("hvs.t0ken-of-the-file")},
	} {
		cfg.URL = serve(t, quote)
		_, err := newResolver(t, cfg, secret.Timing{}).Load(t.Context()).Resolve(version1Password)
		if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "status 400: <html>cannot handle") || len(err.Error()) > 700 {
			t.Errorf("%s: got error %.900v, want the beginning of the answer", cfg.Method, err)
		}
		for _, credential := range []string{"hunter2", "s3cret-id", "t0ken"} {
			if strings.Contains(err.Error(), credential) {
				t.Errorf("%s: the error contains %s: %v", cfg.Method, credential, err)
			}
		}
	}
}

// TestOnlyVaultSaysMissing checks that the 404 of something else at the address, such as a gateway without a backend, does not mean that
// there is no secret, and may go away.
func TestOnlyVaultSaysMissing(t *testing.T) {
	for body, want := range map[string]struct {
		kind vedette.ErrorKind
		text string
	}{
		`{"errors":[]}`: {vedette.NotFound, "has no secret spinnaker/db"},
		`{"errors":["no handler for route \"kv1/spinnaker/db\". route entry not found."]}`: {vedette.NotFound, "has no secret spinnaker/db"},
		"": {vedette.Unavailable, "check the address"}, "<html>404 Not Found</html>": {vedette.Unavailable, "check the address"},
		`{"message":"no route"}`: {vedette.Unavailable, "check the address"}, `{"errors":null}`: {vedette.Unavailable, "check the address"},
	} {
		cfg := vault.Config{Method: vault.AppRole, RoleID: "role", SecretID: configfile.NewSecret("s3cret")}
		cfg.URL = serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/auth/approle/login" {
				fmt.Fprint(w, `{"auth":{"client_token":"t0ken"}}`)
				return
			}
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, body)
		})
		_, err := newResolver(t, cfg, secret.Timing{Total: 1}).Load(t.Context()).Resolve(version1Password)
		if vedette.KindOf(err) != want.kind || err == nil || !strings.Contains(err.Error(), want.text) {
			t.Errorf("404 with %q: got %v, want %s with %q", body, err, want.kind, want.text)
		}
	}
}
