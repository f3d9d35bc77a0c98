package preflight

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
	"github.com/vedette-io/vedette/internal/probe"
	"github.com/vedette-io/vedette/test/controlplane"
)

// TestWhatAccountsLackIsReported tries accounts on a real control plane: with all rights, with some, with none, with
// kinds that do not exist, and without a cluster.
func TestWhatAccountsLackIsReported(t *testing.T) {
	p := controlplane.New(t, controlplane.Options{})
	nobody, err := p.UserKubeconfig("nobody")
	if err != nil {
		t.Fatal(err)
	}
	podReader, err := p.UserKubeconfig("pod-reader")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"create", "role", "pods", "--verb=list,watch", "--resource=pods", "-n", "default"},
		{"create", "rolebinding", "pods", "--role=pods", "--user=pod-reader", "-n", "default"},
		{"create", "clusterrole", "lister", "--verb=list", "--resource=pods"},
		{"create", "rolebinding", "lister", "--clusterrole=lister", "--user=pod-reader", "-n", "kube-system"},
	} {
		if out, err := p.Kubectl(t.Context(), args...); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	account := func(kubeconfig string, selection watch.Selection) agent.Account {
		return agent.Account{Name: "a", Access: kube.Access{KubeconfigFile: kubeconfig}, Selection: selection}
	}
	for _, tt := range []struct {
		name    string
		account agent.Account
		want    []string
	}{
		{"an administrator", account(p.Kubeconfig(), watch.Selection{}), []string{"ok      account a: v1.", "ok      account a rights: may list and watch all 12 feeds"}},
		{"nobody", account(nobody, watch.Selection{Kinds: []string{"pods", "secrets"}}),
			[]string{"identified by its address and certificate only", "failed  account a rights: RBAC denies 2 of 2 feeds: Pod, Secret: allow"}},
		{"one namespace", account(podReader, watch.Selection{Kinds: []string{"pods"}, Namespaces: []string{"default"}, OnlyNamespaced: true}),
			[]string{"ok      account a: v1.", "ok      account a rights: may list and watch all 1 feeds"}},
		{"list without watch", account(podReader, watch.Selection{Kinds: []string{"pods"}, Namespaces: []string{"default", "kube-system"}, OnlyNamespaced: true}),
			[]string{"failed  account a rights: RBAC denies 1 of 2 feeds: Pod in kube-system: allow"}},
		{"misspelt kinds", account(p.Kubeconfig(), watch.Selection{Kinds: []string{"depolyments", "pods"}}),
			[]string{`failed  account a rights: the cluster does not serve the kind "depolyments": did you mean Deployment?`}},
		{"nothing selected", account(p.Kubeconfig(), watch.Selection{Kinds: []string{"nodes"}, OmitKinds: []string{"nodes"}}),
			[]string{"failed  account a rights: the account's configuration selects nothing in this cluster: check kinds"}},
		{"a missing file", account("/no/such/kubeconfig", watch.Selection{}), []string{"failed  account a: kubeconfig file /no/such/kubeconfig does not exist"}},
		{"a missing context", agent.Account{Name: "a", Access: kube.Access{KubeconfigFile: p.Kubeconfig(), Context: "other"}},
			[]string{`has no context "other": it has plane`}},
	} {
		accountProbe := Probes(agent.Config{Accounts: []agent.Account{tt.account}})[1]
		var out bytes.Buffer
		if err := probe.Run(t.Context(), []probe.Probe{accountProbe}, &out); (err != nil) != strings.Contains(out.String(), "failed") {
			t.Errorf("%s: got the error %v with %s", tt.name, err, out.String())
		}
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: got %swant %q", tt.name, out.String(), want)
			}
		}
	}
}

// TestBadFilesAreFoundWithoutConnection checks what is found without a connection.
func TestBadFilesAreFoundWithoutConnection(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) string {
		file := filepath.Join(dir, "kubeconfig")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const kubeconfig = "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'%s}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
	for _, tt := range []struct{ name, cluster, context, want string }{
		{"valid", "", "", ""},
		{"a missing context", "", "y", `has no context "y"`},
		{"a missing authority", ", certificate-authority: /no/ca.crt", "", "/no/ca.crt"},
	} {
		file := write(strings.Replace(kubeconfig, "%s", tt.cluster, 1))
		err := CheckFiles(agent.Config{Accounts: []agent.Account{{Name: "a", Access: kube.Access{KubeconfigFile: file, Context: tt.context}}}})
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "account a: ")) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestOnlyReadyVedetteServersPass tries servers that are ready, not ready, not Vedette's, and that demand a certificate.
func TestOnlyReadyVedetteServersPass(t *testing.T) {
	authority := keypairtest.New(t)
	ready, starting := health.NewServer(), health.NewServer()
	starting.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	agentPair := authority.Issue("agent")
	withTLS := func(pair keypair.Files) uplink.Config {
		config, err := keypair.ClientTLS{CAFile: authority.File, KeyPair: pair}.TLSConfig()
		if err != nil {
			t.Fatal(err)
		}
		return uplink.Config{TLS: true, Creds: credentials.NewTLS(config)}
	}
	plain := uplink.Config{Creds: insecure.NewCredentials()}
	for _, tt := range []struct {
		name, want string
		cfg        uplink.Config
		target     string
	}{
		{"ready", "accepts agents", plain, serveHealth(t, ready)},
		{"starting", "answers, but is not ready", plain, serveHealth(t, starting)},
		{"another gRPC server", "is a gRPC server but not a Vedette server", plain, serveHealth(t, nil)},
		{"nothing", "nothing listens at this address", plain, "127.0.0.1:1"},
		{"mTLS", "accepts agents", withTLS(keypair.Files{Cert: agentPair.Cert, Key: agentPair.Key}), serveHealth(t, ready, grpc.Creds(credentials.NewTLS(authority.ServerTLS())))},
		{"mTLS without a certificate", "failed  server", withTLS(keypair.Files{}), serveHealth(t, ready, grpc.Creds(credentials.NewTLS(authority.ServerTLS())))},
	} {
		tt.cfg.Target = tt.target
		var out bytes.Buffer
		err := probe.Run(t.Context(), Probes(agent.Config{Uplink: tt.cfg}), &out)
		if !strings.Contains(out.String(), tt.want) || (err == nil) != (tt.want == "accepts agents") {
			t.Errorf("%s: got %s, %v, want %q", tt.name, out.String(), err, tt.want)
		}
	}
}

// serveHealth runs a gRPC server with the given health and returns its address.
func serveHealth(t *testing.T, state *health.Server, options ...grpc.ServerOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	if state != nil {
		healthpb.RegisterHealthServer(server, state)
	}
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}
