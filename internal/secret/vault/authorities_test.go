package vault_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret"
	"github.com/vedette-io/vedette/internal/secret/vault"
)

// TestAuthoritiesAreWhole checks that a part of a file of authorities is not used.
func TestAuthoritiesAreWhole(t *testing.T) {
	asked := 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusForbidden)
	}))
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	path := filepath.Join(t.TempDir(), "ca.crt")
	for _, tt := range []struct {
		file string
		want string
	}{
		{string(ca) + string(ca[:len(ca)/2]), path + " does not end"},
		{"# comment\n" + string(ca), "403"},
	} {
		asked = 0
		if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		r := newResolver(t, vault.Config{URL: s.URL, Method: vault.AppRole, RoleID: "role", SecretID: configfile.NewSecret("s"), CAFile: path}, secret.Timing{})
		_, err := r.Load(t.Context()).Resolve(version1Password)
		if err == nil || !strings.Contains(err.Error(), tt.want) || (asked > 0) != (tt.want == "403") {
			t.Errorf("got %v after %d requests, want %q", err, asked, tt.want)
		}
	}
}
