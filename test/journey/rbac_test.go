package journey

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/test/programs"
)

// TestPrintedRulesMakeAnAccountReady applies what vedette-agent rbac prints for accounts without
// rights, one of the whole cluster and one of a namespace.
func TestPrintedRulesMakeAnAccountReady(t *testing.T) {
	bin := t.TempDir()
	program := filepath.Join(bin, "vedette-agent")
	if err := programs.Build(t.Context(), bin, "vedette-agent"); err != nil {
		t.Fatal(err)
	}
	h := start(t, agent.Account{Name: "good"}, redact.Config{})
	for _, tt := range []struct {
		name, options string
		account       func(kubeconfig string) agent.Account
	}{
		{"rules-cluster", "", func(kubeconfig string) agent.Account { return accountOf("rules-cluster", kubeconfig) }},
		{"rules-namespace", "kinds: [pod, deployment], namespaces: [rules-namespace], onlyNamespacedResources: true", func(kubeconfig string) agent.Account {
			account := accountOf("rules-namespace", kubeconfig, "pod", "deployment")
			account.Selection.Namespaces, account.Selection.OnlyNamespaced = []string{"rules-namespace"}, true
			return account
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kubeconfig := createServiceAccount(t, tt.name, "agent")
			dir := t.TempDir()
			file := filepath.Join(dir, "agent.yml")
			content := "kubernetes.accounts: [{name: " + tt.name + ", kubeconfigFile: " + kubeconfig + ", " + tt.options + "}]\n"
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			printRules := func() string {
				t.Helper()
				var errOut strings.Builder
				cmd := exec.CommandContext(t.Context(), program, "rbac", "--config", file)
				cmd.Stderr = &errOut
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("vedette-agent rbac: %v\n%s%s", err, out, errOut.String())
				}
				return string(out)
			}
			before := printRules()
			if !strings.Contains(before, "# missing\n") || !strings.Contains(before, `{kind: ServiceAccount, name: "agent", namespace: "`+tt.name+`"}`) {
				t.Errorf("got rules\n%s\nwant missing ones, and the agent's ServiceAccount", before)
			}
			manifests := filepath.Join(dir, "rules.yml")
			if err := os.WriteFile(manifests, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := plane.KubectlCombinedOutput(t.Context(), "apply", "-f", manifests); err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, before)
			}
			h.await("the API server to know the rules", func() bool { return strings.Contains(printRules(), "# Nothing is missing") })
			// The agent starts only now, because a denied feed waits for minutes before it asks again.
			t.Cleanup(h.startAccounts(tt.account(kubeconfig)))
			h.awaitStatus(tt.name, "Ready", "")
		})
	}
}
