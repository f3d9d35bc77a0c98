//go:build unix

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/test/logbuffer"
	"github.com/vedette-io/vedette/test/ports"
)

// canary begins each secret of TestNoSecretIsShown.
const canary = "c4n4ry-"

// reservePort returns a port that nothing listens on, and that no other listener gets.
func reservePort(t *testing.T) int {
	t.Helper()
	port, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// serveEcho starts a gRPC server whose errors quote what agents send to log in.
func serveEcho(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(stream.Context())
		return status.Errorf(codes.Unauthenticated, "no access with %q", md["authorization"])
	}))
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(srv.Stop)
	return l.Addr().String()
}

// echo is an API server that accepts nobody and quotes the credentials that it gets.
func echo(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	message := fmt.Sprintf("no access with %q, %q, %q", r.Header.Get("Authorization"), user, password)
	w.WriteHeader(http.StatusForbidden)
	if strings.Contains(r.URL.Path, "text") {
		fmt.Fprint(w, message)
		return
	}
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":%q}`, message)
}

// kubeconfigOf returns a kubeconfig in one line with a user.
func kubeconfigOf(server *httptest.Server, path, user string) string {
	ca := base64.StdEncoding.EncodeToString(kubetest.CertPEM(server))
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],`+
		` clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: u, user: %s}]}`, path, ca, user)
}

// canaryConfig returns a configuration with a secret in every place where one may be.
func canaryConfig(t *testing.T, port, profiles, metrics int) string {
	t.Helper()
	server := kubetest.NewServer(t, echo)
	plugin := filepath.Join(t.TempDir(), "plugin")
	script := "#!/bin/sh\necho \"cannot log in with $PLUGIN_PASSWORD\" >&2\nexit 1\n"
	if err := os.WriteFile(plugin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var accounts []string
	for name, kubeconfig := range map[string]string{
		"token":    kubeconfigOf(server, server.URL, "{token: c4n4ry-bearer-token}"),
		"text":     kubeconfigOf(server, server.URL+"/text", "{token: c4n4ry-text-token}"),
		"password": kubeconfigOf(server, server.URL, "{username: somebody, password: c4n4ry-password}"),
		"userinfo": kubeconfigOf(server, strings.Replace(server.URL, "https://", "https://somebody:c4n4ry-userinfo@", 1), "{}"),
		"address":  kubeconfigOf(server, "https://somebody:c4n4ry-address@[", "{}"),
		"proxy": strings.Replace(kubeconfigOf(server, server.URL, "{token: c4n4ry-proxy-token}"), "server:",
			"proxy-url: 'http://somebody:c4n4ry-proxy@127.0.0.1:1', server:", 1),
		"exec": kubeconfigOf(server, server.URL, "{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: "+plugin+
			", env: [{name: PLUGIN_PASSWORD, value: c4n4ry-exec-password}]}}"),
		"key":      kubeconfigOf(server, server.URL, "{client-certificate-data: YzRuNHJ5LWNlcnQ=, client-key-data: YzRuNHJ5LWtleQ==}"),
		"not-yaml": "users: [c4n4ry-not-yaml",
		"not-base": "users: [{name: u, user: {client-key-data: c4n4ry-not-base64}}]",
	} {
		contents := strings.ReplaceAll(kubeconfig, "!", "")
		accounts = append(accounts, fmt.Sprintf("{name: %s, kubeconfigContents: 'encrypted:noop!%s'}", name, strings.ReplaceAll(contents, "'", "''")))
	}
	accounts = append(accounts, "{name: file, kubeconfigFile: 'encryptedFile:noop!c4n4ry-file'}",
		"{name: type, insecure: 'encrypted:noop!c4n4ry-type'}", "{name: vault, kubeconfigContents: 'encrypted:vault!e:kv!p:x!k:y'}")
	vault := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"errors":["no access with %s"]}`, r.Header.Get("X-Vault-Token"))
	}))
	t.Cleanup(vault.Close)
	return fmt.Sprintf(`
agentId: c4n4ry-free-agent
clouddriver: {grpc: %q, insecure: true, auth.token: 'encrypted:noop!c4n4ry-agent-token'}
server: {host: 127.0.0.1, port: %d, adminToken: 'encrypted:noop!c4n4ry-admin-token'}
pprof: {enabled: true, port: %d}
prometheus: {enabled: true, host: 127.0.0.1, port: %d}
secrets.vault: {enabled: true, url: %q, authMethod: TOKEN, token: c4n4ry-vault-token}
logging: {level: trace, fields: {team: 'encrypted:noop!visible-field'}}
kubernetes.accounts:
- %s
`, serveEcho(t), port, profiles, metrics, vault.URL, strings.Join(accounts, "\n- "))
}

// TestNoSecretIsShown runs the agent with all logging and secrets in every place, against a server, API servers, a
// Vault and a plugin that quote them, and searches everything that the agent shows for the secrets. They
// are references first, and then are in the file as they are.
func TestNoSecretIsShown(t *testing.T) {
	for name, convert := range map[string]func(string) string{
		"references": func(config string) string { return config },
		"literals": func(config string) string {
			config = strings.ReplaceAll(config, "encrypted:noop!c4n4ry-type", "visible") // errors quote a value that is not a boolean
			return strings.ReplaceAll(config, "encrypted:noop!", "")
		},
	} {
		t.Run(name, func(t *testing.T) { testCanary(t, convert) })
	}
}

func testCanary(t *testing.T, convert func(string) string) {
	t.Setenv("TMPDIR", t.TempDir())
	port, profiles, metrics := reservePort(t), reservePort(t), reservePort(t)
	file := filepath.Join(t.TempDir(), "agent.yml")
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(convert(canaryConfig(t, port, profiles, metrics)))
	cfg, err := config.Load(file, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	shown := &logbuffer.Buffer{}
	fmt.Fprintln(shown, cfg.Effective(), cfg.Unused(), cfg.Notices(), cfg.Connections(), check(cfg))
	fmt.Fprintf(shown, "%+v %#v", cfg, *cfg)
	logConfig := cfg.Logging.Config
	logConfig.Fields = nil // the operator's own
	log, err := logging.New(logConfig, shown, shown)
	if err != nil {
		t.Fatal(err)
	}
	logging.SetSecrets(log, cfg.SecretValues()) // as package program does
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, cfg, log) }()
	awaitText(t, shown, "cannot reach the cluster", 9) // each account with credentials
	awaitText(t, shown, "Unauthenticated", 1)
	write("kubernetes.accounts: [{name: 'encrypted:noop!c4n4ry-name', insecure: 'encrypted:noop!c4n4ry-insecure'}]\nserver.port: encrypted:noop!c4n4ry-port\n")
	awaitText(t, shown, "the changed configuration cannot be used", 1)
	for _, address := range []string{
		fmt.Sprint(port, "/health"), fmt.Sprint(port, "/ready"), fmt.Sprint(port, "/accounts"), fmt.Sprint(port, "/watches"),
		fmt.Sprint(port, "/operations"), fmt.Sprint(port, "/accounts/token/version"), fmt.Sprint(metrics, "/metrics"),
		fmt.Sprint(profiles, "/debug/pprof/goroutine?debug=2"),
	} {
		io.WriteString(shown, get(t, "http://127.0.0.1:"+address))
	}
	cancel()
	if err := <-ended; err != nil {
		fmt.Fprintln(shown, err)
	}
	if err := cfg.Close(); err != nil {
		t.Error(err)
	}
	expectNoCanary(t, shown.String())
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("got the files %q after the end", left)
	}
}

// expectNoCanary checks that a text contains no secret in any of the usual encodings. The agent's id is
// none.
func expectNoCanary(t *testing.T, text string) {
	t.Helper()
	text = strings.ReplaceAll(text, "c4n4ry-free-agent", "")
	if len(text) < 10_000 {
		t.Errorf("got only %d bytes to search", len(text))
	}
	for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))[:8], fmt.Sprintf("%x", canary), strconv.QuoteToASCII(canary)[1:7]} {
		for rest := text; ; {
			i := strings.Index(rest, form)
			if i < 0 {
				break
			}
			t.Errorf("got a secret in %q", rest[max(0, i-300):min(len(rest), i+60)])
			rest = rest[i+len(form):]
		}
	}
}

// awaitText waits until a log has a text a number of times.
func awaitText(t *testing.T, log *logbuffer.Buffer, text string, count int) {
	t.Helper()
	deadline := time.After(time.Minute)
	for strings.Count(log.String(), text) < count {
		select {
		case <-deadline:
			t.Fatalf("timeout waiting for %d times %q in\n%s", count, text, log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return url + "\n" + string(body)
}
