package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile/configtest"
)

// TestReferencesCountInFileAndEnvironment checks that references count in the server's file and in its environment variables.
func TestReferencesCountInFileAndEnvironment(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	env := func(name string) (string, bool) {
		value, ok := map[string]string{"VEDETTE_SERVER_UPSTREAM_PASSWORD": "encrypted:noop!hunter3"}[name]
		return value, ok
	}
	c, err := parse("c.yml", []byte(`
sql: {url: "postgres://root:${default.password}@db/vedette"}
artifacts.github: {enabled: true, accounts: [{name: a, token: "encrypted:noop!hunter4", usernamePasswordFile: "encryptedFile:noop!user:hunter5"}]}
default: {x: "encrypted:vault!e:kv!p:unused!k:token", password: "encrypted:noop!hunter2"}
`), env)
	if err != nil {
		t.Fatal(err)
	}
	github := c.Artifacts.GitHub.Accounts[0]
	if !strings.Contains(c.Database().Reveal(), "root:hunter2@db") || github.Token.Reveal() != "hunter4" || c.Upstream.Password.Reveal() != "hunter3" {
		t.Errorf("got %s, %s, %s", c.Database().Reveal(), github.Token.Reveal(), c.Upstream.Password.Reveal())
	}
	if content, err := os.ReadFile(github.UsernamePasswordFile); err != nil || string(content) != "user:hunter5" {
		t.Errorf("got %q, %v", content, err)
	}
	if printed := fmt.Sprint(c.Effective(), c.Notices(), c.Warnings(), c.Unused(), c.Database()); strings.Contains(printed, "hunter") {
		t.Errorf("the settings show secrets: %s", printed)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "vedette-secrets-*")); len(left) > 0 {
		t.Errorf("got the temporary files %q", left)
	}
}

// TestSecretsInEveryKey sets each key to a secret, and searches problems, notices and settings for it.
func TestSecretsInEveryKey(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, f := range configtest.WithSecrets(Config{}) {
		c, err := parse("c.yml", []byte(f.File), nil)
		if configtest.ShowsSecret(err) {
			t.Errorf("%s: got error %v", f.File, err)
		}
		if err != nil {
			continue
		}
		for _, printed := range []any{c.Effective(), c.Notices(), c.Unused(), c.UnknownKeys(), c.InactiveSettings(), c.Warnings()} {
			if configtest.ShowsSecret(printed) {
				t.Errorf("%s: got %v", f.File, printed)
			}
		}
	}
}

// TestURLsAreMasked checks that no setting is shown with what signs or authenticates a URL.
func TestURLsAreMasked(t *testing.T) {
	c, err := parse("c.yml", []byte(`
artifacts.helm: {enabled: true, accounts: [{name: a, repository: "https://charts.example/stable?sig=hunter2&se=1#a=hunter2"}, {name: b, repository: "https://ghp_hunter2@charts.example"}]}
artifacts.s3: {enabled: true, accounts: [{name: a, apiEndpoint: "https://u:hunter2@minio/?hunter2"}]}
services.front50: {enabled: true, baseUrl: "https://u:hunter2@front50"}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	printed := fmt.Sprint(c.Effective(), c.Notices(), c.Warnings(), c.Unused())
	if strings.Contains(printed, "hunter") || !strings.Contains(printed, "https://charts.example/stable?sig=********") {
		t.Errorf("got %s, want no secrets", printed)
	}
}
