package journey

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/test/programs"
)

// TestVersionThatWasNotTestedIsNamed connects an account to a cluster that says that it is an old Kubernetes. The account works, and its
// conditions, the log and the command check name the version.
func TestVersionThatWasNotTestedIsNamed(t *testing.T) {
	kubeconfig := writeOldCluster(t, "v1.29.4")
	h := start(t, agent.Account{Name: "good"}, redact.Config{})
	t.Cleanup(h.startAccounts(accountOf("old", kubeconfig, "Namespace")))
	h.awaitStatus("old", "Ready", "")
	var account struct {
		Conditions []struct{ Type, Status, Reason, Message string }
	}
	h.await("the condition of the account", func() bool {
		return h.get("/vedette/v1/accounts/old", &account) && len(account.Conditions) > 0
	})
	c := account.Conditions[0]
	if c.Type != "VersionTested" || c.Status != "False" || c.Reason != "OlderThanTested" || !strings.Contains(c.Message, "Kubernetes 1.29 is older than the versions") {
		t.Errorf("got conditions %+v", account.Conditions)
	}
	if log := h.log.String(); strings.Count(log, "the agent was not tested with this version of Kubernetes") != 1 {
		t.Error("the log does not name the version once")
	}
	account.Conditions = nil
	if !h.get("/vedette/v1/accounts/good", &account) || len(account.Conditions) > 0 {
		t.Errorf("a version that was tested: got conditions %+v", account.Conditions)
	}

	bin, file := t.TempDir(), filepath.Join(t.TempDir(), "agent.yml")
	if err := programs.Build(t.Context(), bin, "vedette-agent"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("kubernetes.accounts: [{name: old, kinds: [Namespace], kubeconfigFile: "+kubeconfig+"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := exec.CommandContext(t.Context(), filepath.Join(bin, "vedette-agent"), "check", "--connect", "--config", file).CombinedOutput() // the server is missing
	if !strings.Contains(string(out), "ok      account old: v1.29.4") || !strings.Contains(string(out), "Kubernetes 1.29 is older") {
		t.Errorf("check does not name the version:\n%s", out)
	}
}

// writeOldCluster returns a kubeconfig for the control plane, which says that it has another version.
func writeOldCluster(t *testing.T, version string) string {
	t.Helper()
	target, err := url.Parse(plane.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := plane.UserClient("old", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: client.Transport, FlushInterval: -1}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]string{"major": "1", "minor": "29", "gitVersion": version})
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\n"+
		"clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]\n", server.URL, authority)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
