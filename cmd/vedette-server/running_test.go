package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/config"
	"github.com/vedette-io/vedette/server/metrics"
)

// TestRunningServerTellsItsSettings asks a server that runs what is in effect, while its files change.
func TestRunningServerTellsItsSettings(t *testing.T) {
	var handler http.Handler
	rest := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	defer rest.Close()
	file := filepath.Join(t.TempDir(), "server.yml")
	_, port, _ := strings.Cut(strings.TrimPrefix(rest.URL, "http://"), ":")
	load := func(text string) *config.Config {
		t.Helper()
		if err := os.WriteFile(file, []byte("server.port: "+port+"\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	const database = "sql: {url: 'postgres://u@h/d', password: hunter2}\n"
	started, log := load(database+"cache.kinds: [Pod]\n"), slog.New(slog.DiscardHandler)
	r := newReloader(started, "s1", metrics.New("test"), log)
	r.server = recordedServer{make(chan server.Reloadable, 10)}
	handler = configHandler(started, r, log)
	for _, tt := range []struct {
		name, text string
		reload     bool
		want       []string
		not        string
	}{
		{"the same files", database + "cache.kinds: [Pod]\n", false,
			[]string{"running server s1: the configuration is in effect since 20", "the files agree"}, "not in effect"},
		{"before a reload", database + "cache.kinds: [Job]\naccounts.removeData: false\n", false,
			[]string{"not in effect: cache.kinds", "not in effect: accounts.removeData = false"}, "the files agree"},
		{"after a reload", database + "cache.kinds: [Job]\naccounts.removeData: false\n", true,
			[]string{"not in effect: accounts.removeData = false"}, "cache.kinds"},
	} {
		cfg := load(tt.text)
		if tt.reload {
			r.Reload(t.Context(), nil)
		}
		got := strings.Join(running(t.Context(), cfg), "\n")
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %s, want %s", tt.name, got, want)
			}
		}
		if strings.Contains(got, tt.not) {
			t.Errorf("%s: got %s, want nothing of %s", tt.name, got, tt.not)
		}
	}
	response, err := http.Get(rest.URL + "/config")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || strings.Contains(string(body), "hunter2") || !strings.Contains(string(body), `"name":"s1"`) {
		t.Errorf("got %s, %v", body, err)
	}
}

// TestRunningWithTokenFile checks that the token of a file is meant to be sent, as the one in the configuration is.
func TestRunningWithTokenFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "server.yml")
	text := "sql: {url: 'postgres://u@h/d', password: hunter2}\nserver: {address: 192.0.2.1, adminTokenFile: " + filepath.Join(dir, "absent") + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(running(t.Context(), cfg), "\n"); !strings.Contains(got, "server.adminTokenFile") || !strings.Contains(got, "absent") {
		t.Errorf("got %s, want why the file cannot be read", got)
	}
}
