package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/internal/probe"
	"github.com/vedette-io/vedette/server/config"
	"github.com/vedette-io/vedette/test/logbuffer"
	"github.com/vedette-io/vedette/test/ports"
)

// serveEcho starts a web server that accepts nobody and quotes the credentials that it gets: with status 401,
// below /forbidden with 403, and below /redirect in a redirect to where nobody listens.
func serveEcho(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		status := http.StatusUnauthorized
		switch {
		case strings.HasPrefix(r.URL.Path, "/forbidden"):
			status = http.StatusForbidden
		case strings.HasPrefix(r.URL.Path, "/redirect"):
			status = http.StatusFound
			w.Header().Set("Location", "http://somebody:"+password+"@127.0.0.1:1/"+password+"?token="+url.QueryEscape(r.Header.Get("Authorization")))
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"message":"no access with %q, %q, %q"}`, r.Header.Get("Authorization"), password, r.Header.Get("X-Gateway"))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// canaryConfig has a secret in every kind of place, as it is; each begins with c4n4ry-.
const canaryConfig = `
logging.level: trace
server: {port: %d, adminToken: c4n4ry-admin-token}
grpc.server: {port: %d}
pprof: {enabled: true, port: %d}
prometheus: {enabled: true, port: %d}
sql: {url: %q}
upstream:
  baseUrl: %q
  username: somebody
  password: c4n4ry-upstream-password
  headers: {X-Gateway: Bearer c4n4ry-header}
services.front50: {enabled: true, baseUrl: %q}
secrets.vault: {enabled: true, url: %q, authMethod: USERPASS, username: somebody, password: c4n4ry-vault}
artifacts:
  network.allowedAddresses: [127.0.0.1]
  http.enabled: true
  http.accounts:
  - {name: web, username: somebody, password: c4n4ry-http-password, urlRestrictions: {allowedHostnamesRegex: ".*", rejectLocalhost: false, rejectVerbatimIps: false}}
  github.enabled: true
  github.accounts:
  - {name: hub, token: c4n4ry-github-token, urlRestrictions: {allowedHostnamesRegex: ".*", rejectLocalhost: false, rejectVerbatimIps: false}}
  s3.enabled: true
  s3.accounts:
  - {name: bucket, apiEndpoint: %q, apiRegion: r, awsAccessKeyId: key, awsSecretAccessKey: c4n4ry-s3}
`

// canaryAccounts returns the accounts of Helm repositories and Git servers. Some secrets are in files.
func canaryAccounts(t *testing.T, echo string) (text string) {
	t.Helper()
	dir := t.TempDir()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("c4n4ry-passphrase"))
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	login, token, key := file("login", "somebody:c4n4ry-login-file"), file("token", "c4n4ry-token-file\n"), file("key", string(pem.EncodeToMemory(block)))
	program := file("program", "#!/bin/sh\necho c4n4ry-program\necho c4n4ry-program >&2\nexit 1\n")
	if err := os.Chmod(program, 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	text = "  helm.enabled: true\n  helm.accounts:\n"
	for _, path := range []string{"unauthorized", "forbidden", "redirect"} {
		text += fmt.Sprintf("  - {name: helm-%[1]s, repository: %[2]s/%[1]s, username: somebody, password: c4n4ry-helm-password}\n", path, echo)
		text += fmt.Sprintf("  - {name: helm-file-%[1]s, repository: %[2]s/%[1]s, usernamePasswordFile: %[3]s}\n", path, echo, login)
	}
	return text + "  git-repo.enabled: true\n  git-repo.accounts:\n" +
		"  - {name: git-password, username: somebody, password: c4n4ry-git-password}\n" +
		"  - {name: git-token, token: c4n4ry-git-token}\n" +
		"  - {name: git-login-file, usernamePasswordFile: " + login + "}\n" +
		"  - {name: git-token-file, tokenFile: " + token + "}\n" +
		"  - {name: git-ssh, sshPrivateKeyFilePath: " + key + ", sshPrivateKeyPassphrase: c4n4ry-passphrase, sshTrustUnknownHosts: true}\n" +
		"  - {name: git-ssh-wrong, sshPrivateKeyFilePath: " + key + ", sshPrivateKeyPassphrase: c4n4ry-wrong-passphrase, sshTrustUnknownHosts: true}\n" +
		"  - {name: git-ssh-program, sshPrivateKeyFilePath: " + key + ", sshPrivateKeyPassphraseCmd: " + program + ", sshTrustUnknownHosts: true}\n"
}

// fetchArtifacts asks for artifacts with all accounts, and returns the answers.
func fetchArtifacts(t *testing.T, rest, echo string) (answers []byte) {
	t.Helper()
	ask := func(artifactType, account, name, reference string) {
		t.Helper()
		answers = append(answers, fetch(t, http.MethodPut, rest+"/artifacts/fetch",
			fmt.Sprintf(`{"type":%q,"artifactAccount":%q,"name":%q,"reference":%q,"version":"main"}`, artifactType, account, name, reference))...)
	}
	ask("s3/object", "bucket", "", "s3://bucket/file")
	for _, account := range []string{"git-ssh", "git-ssh-wrong", "git-ssh-program"} {
		ask("git/repo", account, "", "ssh://git@127.0.0.1:1/repo")
	}
	for _, path := range []string{"unauthorized", "forbidden", "redirect"} {
		for _, helm := range []string{"helm-", "helm-file-"} {
			ask("helm/chart", helm+path, "chart", "")
			ask("helm/index", helm+path, "", "")
			answers = append(answers, fetch(t, http.MethodGet, rest+"/artifacts/account/"+helm+path+"/names?type=helm/chart", "")...)
		}
		for _, git := range []string{"git-password", "git-token", "git-login-file", "git-token-file"} {
			ask("git/repo", git, "", echo+"/"+path+"/repo")
		}
		ask("http/file", "web", "", echo+"/"+path)
		ask("github/file", "hub", "", echo+"/"+path)
	}
	return answers
}

// TestNoSecretIsShown runs the server with all logging and secrets in its file, against services that quote them,
// and searches everything that the server shows for the secrets.
func TestNoSecretIsShown(t *testing.T) {
	dir, shown := t.TempDir(), &logbuffer.Buffer{}
	t.Setenv("TMPDIR", t.TempDir())
	file, open := filepath.Join(dir, "vedette-server.yml"), reservePorts(t, 4)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	echo := serveEcho(t)
	accounts := canaryAccounts(t, echo)
	configWith := func(database string) string {
		withPassword := strings.Replace(echo, "http://", "http://somebody:c4n4ry-userinfo@", 1)
		return fmt.Sprintf(canaryConfig, open[0], open[1], open[2], open[3], database, echo, withPassword, echo, echo) + accounts
	}

	write(configWith("postgres://somebody:c4n4ry-database@127.0.0.1:1/name?sslmode=disable"))
	cfg := loadCanary(t, file, shown)
	all, err := probes(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := probe.Run(t.Context(), all, shown); err == nil {
		t.Error("all probes succeeded")
	}

	write(configWith("sqlite:" + filepath.Join(dir, "v.db")))
	cfg = loadCanary(t, file, shown)
	log, err := logging.New(cfg.Logging.Config, shown, shown)
	if err != nil {
		t.Fatal(err)
	}
	logging.SetSecrets(log, cfg.SecretValues()) // as package program does
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, cfg, log) }()
	rest := fmt.Sprint("http://127.0.0.1:", open[0])
	await(t, "the server answers", func() bool {
		response, err := http.Get(rest + "/vedette/v1/accounts")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK // not that the server is starting
	})
	for _, path := range []string{"/health", "/ready", "/config", "/credentials", "/applications", "/vedette/v1/accounts", "/vedette/v1/agents"} {
		shown.Write(fetch(t, http.MethodGet, rest+path, ""))
	}
	answers := fetchArtifacts(t, rest, echo)
	shown.Write(answers)
	for _, want := range []string{"401", "403", "connection refused", "helm-redirect", "git-token-file", "not a usable SSH key", "run the program"} {
		if !strings.Contains(string(answers), want) {
			t.Errorf("no artifact failed with %q: %s", want, answers)
		}
	}
	shown.Write(fetch(t, http.MethodGet, fmt.Sprint("http://127.0.0.1:", open[3], "/metrics"), ""))
	shown.Write(fetch(t, http.MethodGet, fmt.Sprint("http://127.0.0.1:", open[2], "/debug/pprof/goroutine?debug=2"), ""))
	shown.Write(fetch(t, http.MethodGet, fmt.Sprint("http://127.0.0.1:", open[2], "/debug/pprof/cmdline"), ""))
	for _, broken := range []string{"sql: {password:c4n4ry-key}\n", "password:c4n4ry-top: 1\nsql.url: {}\n", "server.adminToken: [c4n4ry-list\n"} {
		before := strings.Count(shown.String(), "cannot be used")
		write(broken)
		await(t, "the server rejects the file", func() bool { return strings.Count(shown.String(), "cannot be used") > before })
	}
	shown.Write(fetch(t, http.MethodGet, rest+"/health", ""))
	shown.Write(fetch(t, http.MethodGet, rest+"/config", "")) // with why the last file is rejected
	cancel()
	fmt.Fprintln(shown, <-ended)
	expectNoCanary(t, "output", shown.String())
	stored, err := os.ReadFile(filepath.Join(dir, "v.db"))
	if err != nil {
		t.Fatal(err)
	}
	expectNoCanary(t, "database", string(stored))
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("got the files %q after the end", left)
	}
}

func reservePorts(t *testing.T, n int) []int {
	t.Helper()
	var all []int
	for range n {
		port, err := ports.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, port)
	}
	return all
}

// loadCanary loads a configuration and shows what `check` shows of it.
func loadCanary(t *testing.T, file string, shown io.Writer) *config.Config {
	t.Helper()
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cfg.Close(); err != nil {
			t.Error(err)
		}
	})
	fmt.Fprintln(shown, cfg.Effective(), cfg.Unused(), cfg.Warnings(), cfg.Notices(), cfg.Connections(), check(cfg))
	return cfg
}

func fetch(t *testing.T, method, address, body string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, "%s: %s\n%s\n", address, response.Status, answer)
}

// await waits until a condition is true.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("timeout waiting until %s", what)
		case <-tick.C:
		}
	}
}

// expectNoCanary checks that a text contains no secret in any of the usual encodings.
func expectNoCanary(t *testing.T, what, text string) {
	t.Helper()
	for _, form := range []string{"c4n4ry-", base64.StdEncoding.EncodeToString([]byte("c4n4ry-"))[:8], fmt.Sprintf("%x", "c4n4ry-")} {
		for rest := text; ; {
			i := strings.Index(rest, form)
			if i < 0 {
				break
			}
			t.Errorf("got a secret in the %s: %q", what, rest[max(0, i-300):min(len(rest), i+60)])
			rest = rest[i+len(form):]
		}
	}
}
