package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
)

// writeFiles writes files of a directory, and removes those whose content is "-".
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		err := os.Remove(path)
		if content != "-" {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

func noVariables(string) (string, bool) { return "", false }

// TestReloadRefusesBrokenFiles checks which changes of files lead to another configuration, and which are refused.
func TestReloadRefusesBrokenFiles(t *testing.T) {
	const one, two = "kubernetes.accounts: [{name: one, kubeconfigFile: /k}]\n", "kubernetes.accounts: [{name: two, kubeconfigFile: /k}]\n"
	for _, tt := range []struct {
		name          string
		before, after map[string]string
		accounts      string
		err           string
	}{
		{"another account", map[string]string{"agent.yml": one}, map[string]string{"agent.yml": two}, "two", ""},
		{"a new overlay", map[string]string{"agent.yml": one}, map[string]string{"agent-local.yml": two}, "two", ""},
		{"a removed overlay", map[string]string{"agent.yml": one, "agent-local.yml": two}, map[string]string{"agent-local.yml": "-"}, "one", ""},
		{"half of a file", map[string]string{"agent.yml": one}, map[string]string{"agent.yml": one[:30]}, "", "not valid YAML"},
		{"a truncated file", map[string]string{"agent.yml": one}, map[string]string{"agent.yml": ""}, "", "agent.yml has become empty"},
		{"a truncated overlay", map[string]string{"agent.yml": one, "agent-local.yml": two}, map[string]string{"agent-local.yml": "# \n"}, "", "agent-local.yml has become empty"},
		{"a removed file", map[string]string{"agent.yml": one}, map[string]string{"agent.yml": "-"}, "", "no such file"},
		{"an unknown key", map[string]string{"agent.yml": one}, map[string]string{"agent.yml": one + "outbox.size: 1\n"}, "", "outbox.size"},
		{"an invalid account", map[string]string{"agent.yml": one}, map[string]string{"agent.yml": "kubernetes.accounts: [{name: one, insecure: maybe}, {name: two}]\n"}, "two", ""},
	} {
		dir := t.TempDir()
		writeFiles(t, dir, tt.before)
		before, err := Load(filepath.Join(dir, "agent.yml"), noVariables)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		writeFiles(t, dir, tt.after)
		next, files, err := before.Next()
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: got error %v, want %q", tt.name, err, tt.err)
		}
		if !slices.ContainsFunc(files, func(f configfile.File) bool { return f.Path == filepath.Join(dir, "agent-local.yml") }) {
			t.Errorf("%s: got files %v, want the overlay too", tt.name, files)
		}
		if err != nil {
			continue
		}
		var names []string
		for _, a := range next.Kubernetes.Accounts {
			names = append(names, string(a.Name))
		}
		if strings.Join(names, " ") != tt.accounts || next.AgentID != before.AgentID {
			t.Errorf("%s: got accounts %q of agent %s, want %q of %s", tt.name, names, next.AgentID, tt.accounts, before.AgentID)
		}
	}
}

// TestFilesOfSecretsStay checks that the path of a file with a secret stays the same, so that its
// account does not change, and that the file of another secret comes and goes.
func TestFilesOfSecretsStay(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	account := func(name, secret string) string {
		return "{name: " + name + ", kubeconfigFile: 'encryptedFile:noop!" + secret + "'}"
	}
	write := func(accounts ...string) {
		writeFiles(t, dir, map[string]string{"agent.yml": "kubernetes.accounts: [" + strings.Join(accounts, ", ") + "]\n"})
	}
	write(account("a", "one"), account("b", "two"))
	before, err := Load(filepath.Join(dir, "agent.yml"), noVariables)
	if err != nil {
		t.Fatal(err)
	}
	first, second := before.Kubernetes.Accounts[0].KubeconfigFile, before.Kubernetes.Accounts[1].KubeconfigFile
	writeFiles(t, dir, map[string]string{"agent.yml": "kubernetes: [\n"})
	if _, _, err := before.Next(); err == nil {
		t.Fatal("broken YAML is accepted")
	}
	write(account("a", "one"), account("c", "three"))
	next, _, err := before.Next()
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Adopt(); err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if got := next.Kubernetes.Accounts[0].KubeconfigFile; got != first {
		t.Errorf("got %s, want %s as before", got, first)
	}
	for path, want := range map[string]string{first: "one", second: "", next.Kubernetes.Accounts[1].KubeconfigFile: "three"} {
		content, err := os.ReadFile(path)
		if string(content) != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", path, content, err, want)
		}
	}
}

// TestFilesOfInvalidAccountsStay checks that an account which has become invalid, and therefore stays in
// effect as it was, keeps the file with its secret, even if the engines are configured anew.
func TestFilesOfInvalidAccountsStay(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	load := func(text string, load func() (*Config, error)) *Config {
		writeFiles(t, dir, map[string]string{"agent.yml": text})
		c, err := load()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	next := func(before *Config) func() (*Config, error) {
		return func() (*Config, error) {
			c, _, err := before.Next()
			if err != nil {
				return nil, err
			}
			return c, c.Adopt()
		}
	}
	const engines = "secrets.vault: {enabled: true, url: 'http://localhost:1', authMethod: TOKEN, token: x}\n"
	const valid, invalid = "kubernetes.accounts: [{name: a, kubeconfigFile: 'encryptedFile:noop!one'}]\n",
		"kubernetes.accounts: [{name: a, kubeconfigFile: 'encryptedFile:noop!two', insecure: maybe}]\n"
	first := load(valid, func() (*Config, error) { return Load(filepath.Join(dir, "agent.yml"), noVariables) })
	file := first.Kubernetes.Accounts[0].KubeconfigFile
	second := load(invalid, next(first))
	third := load(engines+invalid, next(second))
	if content, err := os.ReadFile(file); string(content) != "one" {
		t.Errorf("got %q, %v, want the file of the account that stays", content, err)
	}
	fourth := load(valid, next(third))
	if content, err := os.ReadFile(fourth.Kubernetes.Accounts[0].KubeconfigFile); string(content) != "one" {
		t.Errorf("got %q, %v, want the file of the account that is valid again", content, err)
	}
	if found, _ := filepath.Glob(filepath.Join(os.TempDir(), "vedette-secrets-*", "[^.]*")); len(found) != 1 {
		t.Errorf("got the files %q, want only one", found)
	}
	if err := fourth.Close(); err != nil {
		t.Error(err)
	}
	if found, _ := filepath.Glob(filepath.Join(os.TempDir(), "vedette-secrets-*")); len(found) > 0 {
		t.Errorf("got %q after Close", found)
	}
}

// TestRestartKeysAreNamed checks which changes count from the next start on only.
func TestRestartKeysAreNamed(t *testing.T) {
	const before = "clouddriver.grpc: a:1\nserver.port: 1\nkubernetes.accounts: [{name: a}]\n"
	for _, tt := range []struct {
		after string
		want  []string
	}{
		{before, nil},
		{"clouddriver.grpc: b:1\nserver.port: 1\nkubernetes.accounts: [{name: a}]\n", []string{"clouddriver.grpc"}},
		{"clouddriver.grpc: a:1\nkubernetes.accounts: [{name: a}]\n", []string{"server.port"}},
		{before + "redact.annotations: [x]\nlogging: {level: debug, format: json}\n", []string{"redact.annotations", "logging.format"}},
		{"clouddriver.grpc: a:1\nserver.port: 1\nkubernetes: {noProxy: true, accounts: [{name: b, kinds: [pod]}]}\n", nil},
	} {
		old, err := parse("agent.yml", []byte(before), noVariables)
		if err != nil {
			t.Fatal(err)
		}
		next, err := parse("agent.yml", []byte(tt.after), noVariables)
		if err != nil {
			t.Fatal(err)
		}
		next.AgentID = old.AgentID
		if got := next.NeedRestart(old); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.after, got, tt.want)
		}
	}
}
