package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPasswordsOfServersAreNotPrinted runs commands on servers whose addresses have a password, and
// searches all that they print for it. The servers get the password.
func TestPasswordsOfServersAreNotPrinted(t *testing.T) {
	var sent []string
	answer := `{"version":"v9","items":[]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		sent = append(sent, user+" "+password)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	dir := t.TempDir()
	t.Setenv("VEDETTE_CONFIG", filepath.Join(dir, "config.yml"))
	manifest := filepath.Join(dir, "web.yaml")
	if err := os.WriteFile(manifest, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args, address string) {
		all := strings.Fields(strings.ReplaceAll(args, "ADDRESS", address))
		out, errOut, err := runCLI(t.Context(), all...)
		text := out + errOut
		if err != nil {
			text += err.Error()
		}
		if strings.Contains(text, "canary") {
			t.Errorf("%q prints the password: %s", all, text)
		}
	}
	for _, login := range []string{"canary:canary%2Fpa%3Ass%40word", "canary:canary/pa:ss@word", "canary-token", "canary:canary%zz"} {
		for _, address := range []string{"http://" + login + "@" + host, "http://" + login + "@127.0.0.1:1", "https://" + login + "@" + host, login + "@" + host,
			"ftp://" + login + "@" + host, "http://" + login + "@" + host + "?x=canary", "http://" + login + "@[::1", "http://" + login + "@" + host + ":x"} {
			for _, args := range []string{"version --server ADDRESS", "version -o yaml --server ADDRESS", "version --cacert x --server ADDRESS",
				"config set-context c --server ADDRESS", "config get-contexts", "config get-contexts -o yaml", "config get-contexts -o json", "version --context c",
				"compare-clouddriver --clouddriver ADDRESS", "compare-clouddriver --clouddriver x --vedette ADDRESS"} {
				run(args, address)
			}
			if strings.HasPrefix(address, "http") {
				run("apply -f ADDRESS", address)
			}
		}
	}
	for _, answer = range []string{answer, `{"items":[],"cursor":"a"}`, "not JSON", `{"error":{"kind":"invalid","message":"no"}}`} {
		for _, args := range []string{"accounts", "agents", "feeds", "get pods", "apply -f " + manifest, "ops", "ops get 01", "accounts release x", "logs web"} {
			run(args+" --server ADDRESS", "http://canary:canary%2F@"+host)
		}
	}
	if got := strings.Join(sent, "|"); !strings.Contains(got, "canary canary/pa:ss@word") || !strings.Contains(got, "canary canary/|") {
		t.Errorf("the server was not sent the password, got %q", got)
	}
}
