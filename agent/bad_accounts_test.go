//go:build unix

package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/test/controlplane"
)

// TestBadAccountsDoNotHarmOthers runs an agent with one good account among those with every kind of
// broken access. The good one is registered, each other says why it is not, and the agent stops
// although an exec plugin hangs.
func TestBadAccountsDoNotHarmOthers(t *testing.T) {
	p := controlplane.New(t, controlplane.Options{})
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	kubeconfig := func(cluster, user string) []byte {
		return fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"+
			"clusters: [{name: c, cluster: {%s}}]\nusers: [{name: u, user: {%s}}]\n", cluster, user)
	}
	cluster := fmt.Sprintf("server: %q, certificate-authority: %q", p.URL, p.CA())
	plugin := func(script string) string {
		return fmt.Sprintf("exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: sh, args: [-c, %q]}", script)
	}
	bad := map[vedette.AccountName]struct {
		access kube.Access
		want   string // in its error; empty if it has none as long as this test runs
	}{
		"missing":     {kube.Access{KubeconfigFile: "/no/file"}, "/no/file does not exist"},
		"pipe":        {kube.Access{KubeconfigFile: pipe}, "is not a regular file"},
		"token-pipe":  {kube.Access{KubeconfigContents: kubeconfig(cluster, "tokenFile: "+pipe)}, "is not a regular file"},
		"yaml":        {kube.Access{KubeconfigContents: []byte("\x00{")}, "read kubeconfigContents"},
		"aliases":     {kube.Access{KubeconfigContents: aliasBomb()}, "read kubeconfigContents"},
		"context":     {kube.Access{KubeconfigContents: kubeconfig(cluster, "token: t"), Context: "b"}, `has no context "b"`},
		"token":       {kube.Access{KubeconfigContents: kubeconfig(cluster, "token: wrong")}, "rejected the credentials"},
		"failing":     {kube.Access{KubeconfigContents: kubeconfig(cluster, plugin("echo log in first >&2; exit 1"))}, "log in first"},
		"endless":     {kube.Access{KubeconfigContents: kubeconfig(cluster, plugin("head -c 50000000 /dev/zero"))}, "are not an ExecCredential"},
		"hanging":     {kube.Access{KubeconfigContents: kubeconfig(cluster, plugin("sleep 3600 & wait"))}, ""},
		"silent":      {kube.Access{KubeconfigContents: kubeconfig("server: 'https://"+silent.Addr().String()+"'", "token: t")}, ""},
		"google":      {kube.Access{KubeconfigContents: kubeconfig(cluster, ""), OAuthServiceAccount: pipe}, "is not a regular file"},
		"not-cluster": {kube.Access{InCluster: true, ServiceAccountDir: "/no/dir"}, "use the service account of this pod"},
	}
	cfg := Config{Uplink: uplink.Config{Target: "passthrough:///127.0.0.1:1", Creds: insecure.NewCredentials(), Agent: "a"},
		Accounts: []Account{{Name: "good", Access: kube.Access{KubeconfigFile: p.Kubeconfig()}}}}
	for name, b := range bad {
		cfg.Accounts = append(cfg.Accounts, Account{Name: name, Access: b.access})
	}
	a := New(cfg, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	for tick, deadline := time.NewTicker(20*time.Millisecond), time.After(time.Minute); ; {
		var waiting []string
		for _, s := range a.Status().Accounts {
			if s.Name == "good" && s.State != "registered" || s.Name != "good" && !strings.Contains(s.Error, bad[s.Name].want) {
				waiting = append(waiting, fmt.Sprintf("%s is %s: %s", s.Name, s.State, s.Error))
			}
		}
		if len(waiting) == 0 {
			break
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("timeout waiting for the accounts:\n%s", strings.Join(waiting, "\n"))
		}
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the agent did not stop")
	}
}

// aliasBomb returns a small YAML document of many gigabytes.
func aliasBomb() []byte {
	var b strings.Builder
	b.WriteString("a: &a [x, x, x, x, x, x, x, x, x, x]\n")
	for c := 'b'; c <= 'k'; c++ {
		fmt.Fprintf(&b, "%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 10), ", "))
	}
	return []byte(b.String())
}
