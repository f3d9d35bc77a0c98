package engines

import (
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret/vault"
)

// TestVaultSettings checks that each key of Vault counts.
func TestVaultSettings(t *testing.T) {
	for text, want := range map[string]vault.Config{
		"{url: 'https://v', authMethod: kubernetes, path: k8s, namespace: n, role: r, cacertFile: /ca}": {
			URL: "https://v", Method: "kubernetes", Path: "k8s", Namespace: "n", Role: "r", CAFile: "/ca", JWTFile: "/jwt"},
		"{authMethod: TOKEN, token: t}":                                              {Method: "TOKEN", Token: "t", JWTFile: "/jwt"},
		"{authMethod: userpass, username: u, password: p, userAuthPath: people}":     {Method: "userpass", Username: "u", Password: "p", Path: "people", JWTFile: "/jwt"},
		"{authMethod: userpass, userAuthPath: people, path: staff}":                  {Method: "userpass", Path: "staff", JWTFile: "/jwt"},
		"{authMethod: APPROLE, roleId: r, secretId: s, userAuthPath: only-userpass}": {Method: "APPROLE", RoleID: "r", SecretID: "s", JWTFile: "/jwt"},
	} {
		var s Settings
		if err := configfile.Parse("c.yml", []byte("vault: "+text), configfile.Options{}, &s).Err(); err != nil {
			t.Fatal(err)
		}
		if got := s.Vault.vaultConfig("/jwt"); got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}
