// Package vaultserver runs a real Vault for tests. The program is built from tools/vault, once, by
// scripts/test-vault.sh, so that Vault's dependencies are not ours.
package vaultserver

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/vault/api"
)

// Server is a running Vault.
type Server struct {
	URL   string
	Token string      // of its root user
	Root  *api.Client // with that token
}

// New starts a Vault with nothing in it, and stops it when the test ends.
func New(t *testing.T) *Server {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t))
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe() // the program ends when this one does
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait() // the test's context may have ended it
	})
	s := &Server{}
	if err := json.NewDecoder(stdout).Decode(s); err != nil {
		t.Fatalf("start Vault: %v", err)
	}
	s.Root = s.Client(t, s.Token)
	return s
}

// program returns the path of Vault.
func program(t *testing.T) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	cmd := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(file), "..", "..", "scripts", "test-vault.sh"))
	cmd.Stderr = os.Stderr // a first build takes minutes, in which a test must not look stuck
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("build Vault: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// Client returns a client with a token.
func (s *Server) Client(t *testing.T, token string) *api.Client {
	t.Helper()
	cfg := api.DefaultConfig()
	cfg.Address = s.URL
	client, err := api.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	client.SetToken(token)
	return client
}

// Write writes to a path as the root user and returns the answer; nil if there is none.
func (s *Server) Write(t *testing.T, path string, data map[string]any) *api.Secret {
	t.Helper()
	answer, err := s.Root.Logical().WriteWithContext(t.Context(), path, data)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}
