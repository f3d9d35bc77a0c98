package vault

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
)

func TestEachKeyCountsInTheLogin(t *testing.T) {
	jwt := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(jwt, []byte("j\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"{authMethod: kubernetes, role: r}":                                          "auth/kubernetes/login map[jwt:j role:r]",
		"{authMethod: kubernetes, path: /k8s/, role: r}":                             "auth/k8s/login map[jwt:j role:r]",
		"{authMethod: userpass, username: u, password: p}":                           "auth/userpass/login/u map[password:p]",
		"{authMethod: userpass, username: u, password: p, userAuthPath: people}":     "auth/people/login/u map[password:p]",
		"{authMethod: userpass, username: u, userAuthPath: people, path: staff}":     "auth/staff/login/u map[password:]",
		"{authMethod: APPROLE, roleId: r, secretId: s, userAuthPath: only-userpass}": "auth/approle/login map[role_id:r secret_id:s]",
	} {
		cfg := parseConfig(t, text)
		cfg.JWTFile = jwt
		path, body, err := New(cfg).loginRequest()
		if got := fmt.Sprint(path, " ", body); got != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	cfg := parseConfig(t, "{enabled: true, url: 'https://v', namespace: n, token: t, cacertFile: /ca}")
	if !cfg.Enabled || cfg.URL != "https://v" || cfg.Namespace != "n" || cfg.Token.Reveal() != "t" || cfg.CAFile != "/ca" {
		t.Errorf("got %+v", cfg)
	}
}

func parseConfig(t *testing.T, text string) (cfg Config) {
	t.Helper()
	if err := configfile.Parse("c.yml", []byte(text), configfile.Options{}, &cfg).Err(); err != nil {
		t.Fatal(err)
	}
	return cfg
}
