package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile/configtest"
)

const fileWithSecrets = `
clouddriver.auth.token: encrypted:noop!hunter2
kubernetes.accounts:
- {name: good, kubeconfigFile: "encryptedFile:noop!kind: Config"}
- {name: bad, kubeconfigFile: "encryptedFile:vault!e:kv!p:bad!k:kubeconfig"}
- {name: "encrypted:noop!hidden", kubeconfigContents: "encrypted:noop!hunter3"}
hub.auth.token: encrypted:vault!e:kv!p:unused!k:token
`

// TestReferencesCountInAllSettings checks that references count in all settings, that a bad one of an account leaves out
// that account only, and that nothing of the secrets is left or shown.
func TestReferencesCountInAllSettings(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	c, err := parse("c.yml", []byte(fileWithSecrets), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	accounts := c.Kubernetes.Accounts
	if len(accounts) != 2 || accounts[1].Name != "hidden" || accounts[1].KubeconfigContents.Reveal() != "hunter3" || c.Clouddriver.Auth.Token.Reveal() != "hunter2" {
		t.Errorf("got %+v", accounts)
	}
	if content, err := os.ReadFile(accounts[0].KubeconfigFile); err != nil || string(content) != "kind: Config" {
		t.Errorf("got the kubeconfig %q, %v", content, err)
	}
	if len(c.RejectedAccounts) != 1 || c.RejectedAccounts[0].Name != "bad" ||
		!strings.Contains(c.RejectedAccounts[0].Reason.Error(), "encryptedFile:vault!e:kv!p:bad!k:kubeconfig") {
		t.Errorf("got %+v, want that account bad is left out", c.RejectedAccounts)
	}
	if printed := fmt.Sprint(c.Effective(), c.Notices(), c.Unused()); strings.Contains(printed, "hunter") || strings.Contains(printed, "hidden") {
		t.Errorf("the settings show secrets: %s", printed)
	}
	if changed, err := c.RefreshSecrets(t.Context()); len(changed) > 0 || err != nil {
		t.Errorf("got %q, %v, want no changes", changed, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	expectNoTempFiles(t)
}

// TestRejectedFileLeavesNoSecrets checks the temporary files of a configuration that cannot be used, and that
// its error does not quote the secret.
func TestRejectedFileLeavesNoSecrets(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, setting := range []string{"clouddriver.grpc", "logging.level", "server.port", "outbox.maxBytes"} {
		_, err := parse("c.yml", []byte(setting+": encrypted:noop!hunter2\nkubernetes.accounts: [{name: a, kubeconfigFile: 'encryptedFile:noop!x'}]"), testEnv)
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), setting) {
			t.Errorf("%s: got error %v, want one without the secret", setting, err)
		}
	}
	expectNoTempFiles(t)
}

func expectNoTempFiles(t *testing.T) {
	t.Helper()
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "vedette-secrets-*")); len(left) > 0 || err != nil {
		t.Errorf("got the temporary files %q, %v", left, err)
	}
}

// TestSecretsInEveryKey sets each key to a secret, and searches problems, notices and settings for it.
func TestSecretsInEveryKey(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, f := range configtest.WithSecrets(Config{}) {
		c, err := parse("c.yml", []byte(f.File), noVariables)
		if configtest.ShowsSecret(err) {
			t.Errorf("%s: got error %v", f.File, err)
		}
		if err != nil {
			continue
		}
		for _, printed := range []any{c.Effective(), c.Notices(), c.Unused(), c.UnknownKeys(), c.InactiveSettings(), rejected(c)} {
			if configtest.ShowsSecret(printed) {
				t.Errorf("%s: got %v", f.File, printed)
			}
		}
	}
}

// rejected returns why accounts were rejected.
func rejected(c *Config) (reasons []error) {
	for _, r := range c.RejectedAccounts {
		reasons = append(reasons, r.Reason)
	}
	return reasons
}
