//go:build unix

package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/agent/uplink"
)

// serveHealthChecks starts a gRPC server that accepts one bearer token, or any request if it is empty.
func serveHealthChecks(t *testing.T, token string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		if got := strings.Join(md["authorization"], ","); token != "" && got != "Bearer "+token {
			return nil, status.Errorf(codes.Unauthenticated, "unknown token")
		}
		return next(ctx, req)
	}))
	healthpb.RegisterHealthServer(srv, health.NewServer())
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(srv.Stop)
	return l.Addr().String()
}

// TestTokensAreSent checks that the token of each form of the configuration reaches the server.
func TestTokensAreSent(t *testing.T) {
	for name, tt := range map[string]struct{ auth, want string }{
		"a token":                        {"{token: abc}", ""},
		"a token with a line break":      {`{token: "abc\n"}`, ""},
		"another token":                  {"{token: xyz}", "does not accept the bearer token: check clouddriver.auth"},
		"a command with json":            {`{tokenCommand: {command: echo, args: ['{"token": "abc"}']}}`, ""},
		"a command with the token":       {"{tokenCommand: {command: echo, args: [abc], format: raw}}", ""},
		"a command that fails":           {"{tokenCommand: {command: 'false'}}", "no bearer token for the server"},
		"a token and a command":          {"{token: abc, tokenCommand: {command: 'false'}}", ""},
		"a command that does not exist":  {"{tokenCommand: {command: /no/such/program}}", "run /no/such/program"},
		"a command in the wrong format":  {"{tokenCommand: {command: echo, args: [abc]}}", "clouddriver.auth.tokenCommand.format to raw"},
		"neither":                        {"{}", "unknown token"},
		"arguments without a command":    {"{token: abc, tokenCommand: {args: [x]}}", ""},
		"a refresh interval":             {"{tokenCommand: {command: echo, args: [abc], format: RAW, refreshIntervalSeconds: 5}}", ""},
		"a token of numbers is no token": {"{token: 123}", "does not accept the bearer token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := loadConfig(t, "clouddriver: {grpc: '"+serveHealthChecks(t, "abc")+"', auth: "+tt.auth+"}\n")
			settings, err := newAgentConfig(cfg, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			err = uplink.Probe(t.Context(), settings.Uplink)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestMain connects in a child process if the environment asks for it, because a process reads the
// variables of proxies only once.
func TestMain(m *testing.M) {
	file := os.Getenv("VEDETTE_TEST_CONNECT")
	if file == "" {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := connect(ctx, file); err != nil {
		_, _ = os.Stdout.WriteString("failed: " + err.Error())
		return
	}
	_, _ = os.Stdout.WriteString("reached")
}

// connect connects to the first account of a configuration, or to the server if there is none.
func connect(ctx context.Context, file string) error {
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		return err
	}
	settings, err := newAgentConfig(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if len(settings.Accounts) == 0 {
		return uplink.Probe(ctx, settings.Uplink)
	}
	cluster, err := kube.Connect(settings.Accounts[0].Access, settings.ConnectOptions)
	if err != nil {
		return err
	}
	defer cluster.Close()
	_, _, err = cluster.Identify(ctx)
	return err
}

// TestNoProxyHasThreeLevels checks which connections use HTTPS_PROXY: noProxy has three levels.
func TestNoProxyHasThreeLevels(t *testing.T) {
	cluster := kubetest.NewServer(t, func(w http.ResponseWriter, r *http.Request) {
		answer := `{"gitVersion": "v1"}`
		if r.URL.Path != "/version" {
			w.WriteHeader(http.StatusForbidden)
			answer = `{"kind": "Status", "code": 403, "reason": "Forbidden"}`
		}
		_, _ = io.WriteString(w, answer)
	})
	targets := map[string]string{"vedette.invalid:9091": serveHealthChecks(t, ""), "cluster.invalid:443": cluster.Listener.Addr().String()}
	var proxied atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || targets[r.Host] == "" {
			http.Error(w, "unexpected "+r.Method+" "+r.Host, http.StatusBadGateway)
			return
		}
		proxied.Add(1)
		forward(w, targets[r.Host])
	}))
	defer proxy.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, kubetest.Kubeconfig("https://cluster.invalid", nil), 0o600); err != nil {
		t.Fatal(err)
	}
	const server, unresolved = "clouddriver.grpc: vedette.invalid:9091\n", "cannot be resolved"
	account := server + "kubernetes.accounts: [{name: a, insecure: true, kubeconfigFile: " + kubeconfig + "}]\n"
	for _, tt := range []struct {
		name, file, noProxy, want string
	}{
		{"the server", server, "", "reached"},
		{"the server, clouddriver.noProxy", server + "clouddriver.noProxy: true\n", "", unresolved},
		{"the server, NO_PROXY", server, ".invalid", unresolved},
		{"the server, kubernetes.noProxy", server + "kubernetes.noProxy: true\n", "", "reached"},
		{"a cluster", account, "", "reached"},
		{"a cluster, clouddriver.noProxy", account + "clouddriver.noProxy: true\n", "", "reached"},
		{"a cluster, kubernetes.noProxy", account + "kubernetes.noProxy: true\n", "", unresolved},
		{"a cluster, noProxy of the account", strings.Replace(account, "insecure", "noProxy: true, insecure", 1), "", unresolved},
		{"a cluster, NO_PROXY", account, "cluster.invalid", unresolved},
	} {
		proxied.Store(0)
		file := filepath.Join(t.TempDir(), "agent.yml")
		if err := os.WriteFile(file, []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), "VEDETTE_TEST_CONNECT="+file, "HTTPS_PROXY="+proxy.URL, "NO_PROXY="+tt.noProxy, "https_proxy=", "no_proxy=")
		printed, err := child.Output()
		if err != nil || !strings.Contains(string(printed), tt.want) {
			t.Errorf("%s: got %q, %v, want %q", tt.name, printed, err, tt.want)
		}
		if got := proxied.Load() > 0; got != (tt.want == "reached") {
			t.Errorf("%s: got a connection through the proxy: %t", tt.name, got)
		}
	}
}

// forward connects a request with method CONNECT to an address.
func forward(w http.ResponseWriter, address string) {
	to, err := net.Dial("tcp", address)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer to.Close()
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	_, _ = io.WriteString(from, "HTTP/1.1 200 Connection established\r\n\r\n") // net/http would announce chunks
	go func() {
		_, _ = io.Copy(to, buffered)
		to.Close()
	}()
	_, _ = io.Copy(from, to)
}
