package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
	"github.com/vedette-io/vedette/internal/version"
)

// serveTLS returns the address of a server that requires client certificates, and what it was sent
// last.
func serveTLS(t *testing.T, authority *keypairtest.Authority) (address string, last *http.Request) {
	last = &http.Request{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*last = *r
		_, _ = w.Write([]byte(`{"version":"v9"}`))
	}))
	server.TLS, server.Config.ErrorLog = authority.ServerTLS(), log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, last
}

// TestCommandsUseTheCurrentContext runs the commands that change contexts, and checks which server each following
// command uses.
func TestCommandsUseTheCurrentContext(t *testing.T) {
	authority := keypairtest.New(t)
	ann := authority.Issue("ann")
	address, last := serveTLS(t, authority)
	dir := t.TempDir()
	t.Setenv("VEDETTE_CONFIG", filepath.Join(dir, "config.yml"))
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, out, errOut, err string }{
		{"config get-contexts", "", "No resources found.", ""},
		{"config current-context", "", "", "no current context"},
		{"version", "", "", "VEDETTE_CONFIG names the file"},
		{"--version", version.String() + "\n", "", ""}, // needs no server
		{"-v", "", "", "unknown shorthand flag"},       // kubectl has a number there, for its log
		{"config use-context prod", "", "", `has no context "prod": create it with`},
		{"config set-context prod --server " + address + " --cacert " + authority.File + " --cert " + ann.Cert + " --key " + ann.Key + " --user ann", `Context "prod" created.`, "", ""},
		{"config set-context prod --token-file " + token, `Context "prod" modified.`, "", ""},
		{"config set-context dev --server http://127.0.0.1:1", `Context "dev" created.`, "", ""},
		{"config set-context dev --cacert /no/such/file", "", "", "certificates have no effect without TLS"},
		{"config set-context dev --server https://127.0.0.1:1 --cacert /no/such/file", "", "", "/no/such/file does not exist"},
		{"config set-context dev --server http://dev.example.com --token-file " + token, "", "", "a token is not sent without TLS"},
		{"config set-context", "", "", "give the name of the context"},
		{"config set-context --current --user bob", "", "", "no current context"},
		{"config use-context prod", `Switched to context "prod".`, "", ""},
		{"config current-context", "prod", "", ""},
		{"config get-contexts", "*         prod   " + address, "", ""},
		{"config get-contexts -o name", "prod\ndev\n", "", ""},
		{"config get-contexts prod -o json", `"currentContext": "prod"`, "", ""},
		{"config get-contexts -o yaml", "name: dev", "", ""},
		{"config get-contexts -o wide", "", "", "use -o name, json or yaml"},
		{"config get-contexts devv", "", "", "did you mean dev?"},
		{"version", "server  v9 at " + address, "", ""},
		{"version -o json", `"serverVersion": "v9"`, "", ""},
		{"version --client -o yaml", "clientVersion: ", "", ""},
		{"version -o name", "", "", "use -o json or yaml"},
		{"version --context dev", "", "", "nothing listens at http://127.0.0.1:1"},
		{"version --context prod --server x", "", "", "--server and --context exclude each other"},
		{"version --server " + address, "", "", "with --cacert"}, // nothing of the context is sent to another server
		{"version --server " + address + " --cacert " + authority.File, "", "", "with --cert and --key"},
		{"version --server " + address + " --insecure-skip-tls-verify", "", "", "with --cert and --key"},
		{"version --server " + strings.Replace(address, "https:", "http:", 1), "", "", "begin its address with https://"},
		{"config set-context --current --user bob --token-file=", `Context "prod" modified.`, "", ""},
		{"config delete-context prod", `Deleted context "prod"`, "it was the current context", ""},
		{"config delete-context prod", "", "", `has no context "prod"`},
	} {
		out, errOut, err := runCLI(t.Context(), strings.Fields(tt.args)...)
		if err != nil && tt.err == "" || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) ||
			!strings.Contains(out, tt.out) || !strings.Contains(errOut, tt.errOut) {
			t.Errorf("%s: got %q, %q, error %v; want %q, %q, error %q", tt.args, out, errOut, err, tt.out, tt.errOut, tt.err)
		}
		if strings.HasPrefix(tt.out, "server  v9") {
			if got := last.Header.Get("X-SPINNAKER-USER") + " " + last.Header.Get("Authorization"); got != "ann Bearer abc" {
				t.Errorf("%s: the server was sent %q, want the user and the token of the context", tt.args, got)
			}
		}
	}
}

// TestServerFromEnvironment checks the order of flags, the environment and contexts.
func TestServerFromEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yml")
	text := "currentContext: a\ncontexts: [{name: a, server: 'http://127.0.0.1:2'}, {name: b, server: 'http://127.0.0.1:3'}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, args, server, context, want string }{
		{"the current context", "", "", "", "127.0.0.1:2"},
		{"VEDETTE_CONTEXT", "", "", "b", "127.0.0.1:3"},
		{"VEDETTE_SERVER", "", "http://127.0.0.1:4", "b", "127.0.0.1:4"},
		{"--context", "--context b", "http://127.0.0.1:4", "", "127.0.0.1:3"},
		{"--server", "--server http://127.0.0.1:5", "http://127.0.0.1:4", "b", "127.0.0.1:5"},
	} {
		t.Setenv("VEDETTE_CONFIG", file)
		t.Setenv("VEDETTE_SERVER", tt.server)
		t.Setenv("VEDETTE_CONTEXT", tt.context)
		_, _, err := runCLI(t.Context(), strings.Fields("version "+tt.args)...)
		if err == nil || !strings.Contains(err.Error(), "http://"+tt.want+" ") {
			t.Errorf("%s: got %v, want the server %s", tt.name, err, tt.want)
		}
	}
}

// TestNamespaceOfContext checks that all commands follow the namespace of the context, unless a flag or the address of a server
// says otherwise.
func TestNamespaceOfContext(t *testing.T) {
	c := newSampleClusters()
	server := serveClusters(t, c)
	t.Setenv("VEDETTE_CONFIG", filepath.Join(t.TempDir(), "config.yml"))
	for _, args := range []string{"config set-context shop --server " + server + " --namespace shop", "config use-context shop"} {
		if _, _, err := runCLI(t.Context(), strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ args, want, without string }{
		{"config get-contexts", "shop   " + server, ""},
		{"config get-contexts -o yaml", "namespace: shop", ""},
		{"get pods --account prod-1 -o name", "prod-1/Pod/shop/broken-0", "billing"},
		{"get pods --account prod-1 -o yaml", "name: broken-0", "invoice-0"},
		{"get pods --account prod-1 -o name -A", "prod-1/Pod/billing/invoice-0", ""},
		{"get pods --account prod-1 -o name -n billing", "prod-1/Pod/billing/invoice-0", "shop"},
		{"get pods --account prod-1 -o name --server " + server, "prod-1/Pod/billing/invoice-0", ""},
		{"get prod-1/Pod/billing/invoice-0 -o name", "prod-1/Pod/billing/invoice-0", ""},
		{"logs api-1 --account dev", "one of api-1", ""},
		{"scale deploy/api --replicas 3 --account dev", "deployment.apps/api scaled", ""},
		{"rollout restart deploy/api --account dev", "deployment.apps/api restarted", ""},
		{"delete pod young --account dev", `pod "young" deleted from shop namespace`, ""},
		{"config set-context --current --namespace a/b", "", ""},
		{"config set-context --current --namespace=", `Context "shop" modified.`, ""},
		{"get pods --account prod-1 -o name", "prod-1/Pod/billing/invoice-0", ""},
	} {
		out, errOut, err := runCLI(t.Context(), strings.Fields(tt.args)...)
		if (err == nil) != (tt.want != "") || !strings.Contains(out, tt.want) || tt.without != "" && strings.Contains(out, tt.without) {
			t.Errorf("%s: got %q, %q, %v, want %q without %q", tt.args, out, errOut, err, tt.want, tt.without)
		}
	}
}

// TestCheckKnowsVariables checks that `check` of the other programs does not call the variables of the
// command line unknown.
func TestCheckKnowsVariables(t *testing.T) {
	var environment []string
	for _, name := range connect.Variables() {
		environment = append(environment, name+"=x")
	}
	if got := configfile.UnknownVariables(&struct{}{}, "VEDETTE_AGENT_", environment); len(environment) < 9 || len(got) > 0 {
		t.Errorf("got %q of %q, want none", got, environment)
	}
}
