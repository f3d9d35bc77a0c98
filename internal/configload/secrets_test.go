package configload

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret"
	"github.com/vedette-io/vedette/internal/secret/engines"
)

// sample is a configuration with the section and something else.
type sample struct {
	Name    string            `config:"name"`
	Labels  map[string]string `config:"labels"`
	Secrets engines.Settings  `config:"secrets"`
}

// read reads a configuration with references.
func read(t *testing.T, file string, env map[string]string) (*sample, *configfile.Report, *Loaded) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	o := configfile.Options{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }, EnvPrefix: "T_"}
	s, l := load[sample](configfile.ReadData("s.yml", []byte(file), o, &sample{}), nil, secret.Timing{Total: 1})
	report := l.Report
	s.Secrets.Check(report.Checker().At("secrets"))
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "vedette-secrets-*")); len(left) > 0 {
			t.Errorf("got %q after Close", left)
		}
	})
	return s, report, &l
}

// newVault starts a server that accepts logins with a password and stores one secret. It returns the URL.
func newVault(t *testing.T, password string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/auth/people/login/agent" && bodyHas(r, password):
			fmt.Fprint(w, `{"auth":{"client_token":"t0ken","lease_duration":0}}`)
		case r.URL.Path == "/v1/kv/data/db" && r.Header.Get("X-Vault-Token") == "t0ken":
			fmt.Fprint(w, `{"data":{"data":{"password":"hunter2"},"metadata":{"version":1}}}`)
		default:
			http.Error(w, `{"errors":["permission denied"]}`, http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func bodyHas(r *http.Request, text string) bool {
	body := make([]byte, 1<<10)
	n, _ := r.Body.Read(body)
	return strings.Contains(string(body[:n]), text)
}

// TestSettingsMayBeReferences resolves a reference to Vault whose password is a reference itself, and
// whose URL comes from the environment.
func TestSettingsMayBeReferences(t *testing.T) {
	s, report, l := read(t, `
name: encrypted:vault!e:kv!p:db!k:password
labels: {file: "encryptedFile:noop!content", again: "${name}"}
secrets.vault: {enabled: true, authMethod: USERPASS, userAuthPath: people, username: agent, password: "encrypted:noop!pa55"}
`, map[string]string{"T_SECRETS_VAULT_URL": newVault(t, "pa55")})
	if err := report.Err(); err != nil || s.Name != "hunter2" || s.Labels["again"] != "hunter2" {
		t.Fatalf("got %+v, %v", s, err)
	}
	if content, err := os.ReadFile(s.Labels["file"]); err != nil || string(content) != "content" {
		t.Errorf("got %q, %v", content, err)
	}
	if changed, err := l.RefreshSecrets(t.Context()); len(changed) > 0 || err != nil {
		t.Errorf("got %q, %v, want no changes", changed, err)
	}
	if printed := fmt.Sprint(configfile.Effective(s, report)); strings.Contains(printed, "hunter2") || strings.Contains(printed, "pa55") {
		t.Errorf("the settings show secrets: %s", printed)
	}
}

// TestUnresolvableReferencesAreReported checks what is reported about the section and about references that cannot be resolved.
func TestUnresolvableReferencesAreReported(t *testing.T) {
	for file, want := range map[string][]string{
		"name: x": nil,
		"secrets.vault.enabled: true": {
			`s.yml:1:24: "secrets.vault.enabled" is true, but "secrets.vault.url" is missing`,
			`"secrets.vault.enabled" is true, but "secrets.vault.authMethod" is missing: set it to KUBERNETES`,
		},
		"secrets.vault: {enabled: true, url: 'http://v', authMethod: kubernetes}":       {`"secrets.vault.role" is missing: KUBERNETES needs it`},
		"secrets.vault: {enabled: true, url: 'http://v', authMethod: TOKEN}":            {`"secrets.vault.token" is missing`},
		"secrets.vault: {enabled: true, url: 'http://v', authMethod: TOKEN, token: x}":  nil,
		"secrets.vault: {enabled: true, url: 'v:8200', authMethod: APPROLE, roleId: x}": {`"secrets.vault.url" must be`, `"secrets.vault.secretId" is missing`},
		"secrets.vault: {authMethod: whatever}":                                         nil,
		"{name: 'encrypted:vault!e:kv!p:db!k:password', secrets.vault: {enabled: true, url: 'v:8200', authMethod: TOKEN, token: x}}": {
			"the engine is not configured: correct the settings below secrets.vault", `"secrets.vault.url" must be`},
		"secrets.azure.x: 1":                                                                {`unknown key "secrets.azure.x"`},
		"name: encrypted:vault!e:kv!p:db!k:password":                                        {"s.yml:1:7: \"name\": encrypted:vault!e:kv!p:db!k:password: the engine is not configured: set secrets.vault.enabled"},
		"name: encrypted:azure!k:v":                                                         {"there is no such engine: use one of gcs, k8s, noop, s3, secrets-manager, vault"},
		"name: encrypted:k8s!n:a!k:b":                                                       {"does not run in a pod"},
		"secrets.vault: {token: 'encrypted:vault!e:kv!p:db!k:token'}":                       {"the settings of vault must not be references to vault itself"},
		"secrets.vault: {enabled: true, url: 'http://v', authMethod: 'encrypted:noop!abc'}": {`"secrets.vault.authMethod" must be one of KUBERNETES, TOKEN, USERPASS, APPROLE, got "***"`},
	} {
		_, report, _ := read(t, file, nil)
		var got []string
		for _, p := range report.Problems {
			got = append(got, p.Error())
		}
		if len(got) != len(want) || !slices.EqualFunc(got, want, strings.Contains) {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}

// TestNothingIsFetchedWithoutReferences checks that a configuration without references has no engines.
func TestNothingIsFetchedWithoutReferences(t *testing.T) {
	_, _, l := read(t, "{name: a, secrets.vault: {enabled: true, url: 'http://127.0.0.1:1', authMethod: TOKEN, token: x}}", nil)
	if l.secrets.resolver != nil {
		t.Error("got engines, want none")
	}
	if changed, err := l.RefreshSecrets(t.Context()); changed != nil || err != nil {
		t.Errorf("got %q, %v", changed, err)
	}
}

// TestFilesOfKilledProcessesAreRemoved checks that they are removed even if the configuration has no
// files with secrets anymore.
func TestFilesOfKilledProcessesAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	abandoned := filepath.Join(os.TempDir(), "vedette-secrets-killed")
	if err := os.Mkdir(abandoned, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".lock", "secret"} {
		if err := os.WriteFile(filepath.Join(abandoned, name), []byte("hunter2"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	Load[sample](configfile.ReadData("s.yml", nil, configfile.Options{}, &sample{}), nil)
	if _, err := os.Stat(abandoned); !os.IsNotExist(err) {
		t.Errorf("got %v, want that the directory is gone", err)
	}
}
