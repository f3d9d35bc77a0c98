package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReloadNamesRestartKeys changes the file of a configuration step by step.
func TestReloadNamesRestartKeys(t *testing.T) {
	dir := t.TempDir()
	file, overlay := filepath.Join(dir, "vedette-server.yml"), filepath.Join(dir, "vedette-server-local.yml")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "cache.kinds: [Pod]\n")
	env := func(name string) (string, bool) { return "local", name == "VEDETTE_PROFILES_ACTIVE" }
	started, err := Load(file, env)
	if err != nil {
		t.Fatal(err)
	}
	started.UseDataDir("/data")
	for _, tt := range []struct {
		name, base, overlay, err string
		restart                  []string
	}{
		{"kinds and level", "cache: {kinds: [Job], omitKinds: [Pod], all: false}\nlogging.level: debug\n", "", "", nil},
		{"how accounts are shown", "credentials.primaryAccountTypes: [a]\nkubesvc.cache.cacheDefaults: [Job]\n", "", "", nil},
		{"an overlay", "cache.kinds: [Pod]\n", "agents.heartbeatSeconds: 9\ncache.checkApplicationInFront50: true\nservices.front50.baseUrl: http://front50\n", "",
			[]string{"agents.heartbeatSeconds", "cache.checkApplicationInFront50", "services.front50.baseUrl"}},
		{"the password of the database", "sql: {url: 'postgres://u:hunter2@h/d'}\n", "# nothing\nsql.password: x\n", "", []string{"sql"}},
		{"half of a file", "cache: {kinds: [Po", "x: y\n", "this is not valid YAML", nil},
		{"an empty file", "", "", "vedette-server.yml has become empty", nil},
	} {
		write(file, tt.base)
		write(overlay, tt.overlay)
		next, files, err := started.Next()
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) || len(files) < 2 {
				t.Errorf("%s: got %v, %v, want %s", tt.name, files, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		got := next.NeedRestart(started)
		slices.Sort(got)
		if tt.restart != nil && tt.restart[0] == "sql" {
			if !slices.ContainsFunc(got, func(key string) bool { return strings.HasPrefix(key, "sql") }) {
				t.Errorf("%s: got %q", tt.name, got)
			}
		} else if !slices.Equal(got, tt.restart) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.restart)
		}
		if next.DataDir != "/data" {
			t.Errorf("%s: got %s, want the directory of the command line", tt.name, next.DataDir)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSecretsOfTheDatabaseNeedARestart checks that a password which comes from elsewhere counts,
// although it is never shown.
func TestSecretsOfTheDatabaseNeedARestart(t *testing.T) {
	load := func(password string) *Config {
		t.Helper()
		c, err := parse("s.yml", []byte("sql: {url: 'postgres://u:"+password+"@h/d'}\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if got := load("a").NeedRestart(load("b")); len(got) != 1 || !strings.HasPrefix(got[0], "sql") || strings.Contains(got[0], "b") {
		t.Errorf("got %q", got)
	}
	if got := load("a").NeedRestart(load("a")); len(got) > 0 {
		t.Errorf("got %q for the same configuration", got)
	}
}
