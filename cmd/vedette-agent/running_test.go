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

	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/metrics"
	"github.com/vedette-io/vedette/internal/admin"
)

// TestRunningAgentTellsItsSettings asks an agent that runs what is in effect, while its files change.
func TestRunningAgentTellsItsSettings(t *testing.T) {
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "agent.yml")
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	load := func(text string) *config.Config {
		t.Helper()
		if err := os.WriteFile(file, []byte("agentId: a1\nserver.port: "+port+"\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	started := load("kubernetes.accounts: [{name: a}]\nclouddriver.auth.token: hunter2\n")
	log := slog.New(slog.DiscardHandler)
	r := newReloader(started, nil, &recordedAgent{}, metrics.New("test"), log)
	handler = withConfig(http.NotFoundHandler(), admin.Guard{}, r)
	for _, tt := range []struct {
		name, text string
		reload     bool
		want       []string
		not        string
	}{
		{"the same files", "kubernetes.accounts: [{name: a}]\nclouddriver.auth.token: hunter2\n", false,
			[]string{"running agent a1: the configuration is in effect since 20", "the files agree"}, "not in effect"},
		{"before a reload", "kubernetes.accounts: [{name: b}]\nclouddriver.grpc: other:1\n", false,
			[]string{"not in effect: kubernetes.accounts[0].name = b", "not in effect: clouddriver.grpc = other:1"}, "the files agree"},
		{"after a reload", "kubernetes.accounts: [{name: b}]\nclouddriver.grpc: other:1\n", true,
			[]string{"not in effect: clouddriver.grpc = other:1"}, "kubernetes.accounts"},
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
	response, err := http.Get(server.URL + "/config")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || strings.Contains(string(body), "hunter2") || !strings.Contains(string(body), `"name":"a1"`) {
		t.Errorf("got %s, %v", body, err)
	}
}

// TestRunningWithTokenFile checks that the token of a file is meant to be sent, as the one in the configuration is.
func TestRunningWithTokenFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "agent.yml")
	text := "agentId: a1\nserver: {host: 192.0.2.1, adminTokenFile: " + filepath.Join(dir, "absent") + "}\n"
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
