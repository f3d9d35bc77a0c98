package journey

import (
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/test/controlplane"
)

type accountState struct {
	Name, Status, Message string
	Feeds                 map[string]int
}

func (h *stack) account(name string) (a accountState) {
	h.get("/vedette/v1/accounts/"+name, &a)
	return a
}

// awaitStatus waits until an account has a status and a message.
func (h *stack) awaitStatus(name, status, message string) accountState {
	h.t.Helper()
	var got accountState
	h.await(name+" to be "+status, func() bool {
		got = h.account(name)
		return got.Status == status && strings.Contains(got.Message, message)
	})
	return got
}

// createServiceAccount creates a ServiceAccount in a namespace of its own, and returns a kubeconfig.
func createServiceAccount(t *testing.T, namespace, name string) (kubeconfig string) {
	t.Helper()
	if err := plane.Create(t.Context(), "/api/v1/namespaces",
		controlplane.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": controlplane.Object{"name": namespace}}); err != nil {
		t.Fatal(err)
	}
	if err := plane.Create(t.Context(), "/api/v1/namespaces/"+namespace+"/serviceaccounts",
		controlplane.Object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": controlplane.Object{"name": name}}); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := plane.ServiceAccountKubeconfig(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// grant lets a ServiceAccount read resources in the whole cluster.
func grant(t *testing.T, namespace, name string, resources ...string) {
	t.Helper()
	const rbac = "/apis/rbac.authorization.k8s.io/v1"
	role := controlplane.Object{"metadata": controlplane.Object{"name": namespace + "-" + name},
		"rules": []controlplane.Object{{"apiGroups": []string{"*"}, "resources": resources, "verbs": []string{"get", "list", "watch"}}}}
	binding := controlplane.Object{"metadata": controlplane.Object{"name": namespace + "-" + name},
		"roleRef":  controlplane.Object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace + "-" + name},
		"subjects": []controlplane.Object{{"kind": "ServiceAccount", "namespace": namespace, "name": name}}}
	for path, object := range map[string]controlplane.Object{rbac + "/clusterroles": role, rbac + "/clusterrolebindings": binding} {
		if err := plane.Create(t.Context(), path, object); err != nil {
			t.Fatal(err)
		}
	}
}

// startAccounts starts an agent with several accounts.
func (h *stack) startAccounts(accounts ...agent.Account) (stop func()) {
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return runInBackground(h.t, agent.New(agent.Config{
		Uplink:   uplink.Config{Target: h.srv.GRPC().String(), Creds: insecure.NewCredentials(), Agent: "a2"},
		Accounts: accounts, Redact: redact.Config{},
	}, log).Run)
}

func accountOf(name vedette.AccountName, kubeconfig string, kinds ...string) agent.Account {
	a := agent.Account{Name: name, Selection: watch.Selection{Kinds: kinds}}
	a.Access.KubeconfigFile = kubeconfig
	return a
}

// TestAccountsThatNobodyCanUseAreNotReady checks that accounts with missing rights, misspelt
// kinds or a deleted ServiceAccount say so, and are Ready once the cause is gone.
func TestAccountsThatNobodyCanUseAreNotReady(t *testing.T) {
	h := start(t, agent.Account{Name: "good"}, redact.Config{})
	poor, deleted := createServiceAccount(t, "states-poor", "agent"), createServiceAccount(t, "states-deleted", "agent")
	grant(t, "states-deleted", "agent", "namespaces", "configmaps", "pods")
	t.Cleanup(h.startAccounts(accountOf("poor", poor, "pods", "services"), accountOf("deleted", deleted, "configmaps", "pods"),
		accountOf("misspelt", plane.Kubeconfig(), "Deploymnet"), accountOf("partly", plane.Kubeconfig(), "pods", "Deploymnet")))
	h.awaitStatus("good", "Ready", "")
	denied := h.awaitStatus("poor", "Denied", "the cluster denies 2 of 2 feeds (Pod, Service): RBAC at ")
	if !strings.Contains(denied.Message, "system:serviceaccount:states-poor:agent") || denied.Feeds["live"] != 0 {
		t.Errorf("got %+v, want the user in the message", denied)
	}
	h.awaitStatus("misspelt", "Misconfigured", `the cluster does not serve the kind "Deploymnet": did you mean Deployment?`)
	h.awaitStatus("partly", "Partial", `the cluster does not serve the kind "Deploymnet"`)
	h.awaitStatus("deleted", "Ready", "")
	if err := plane.Delete(t.Context(), "/api/v1/namespaces/states-deleted/serviceaccounts/agent"); err != nil {
		t.Fatal(err)
	}
	h.awaitStatus("deleted", "Denied", "rejected the credentials") // within a minute; the watches last for five
	warnings := 0
	for line := range strings.Lines(h.log.String()) {
		if strings.Contains(line, "the cluster denies feeds of the account") && strings.Contains(line, "account=poor") {
			warnings++
		}
	}
	if warnings < 1 || warnings > 2 { // two if its feeds were denied more than a second apart
		t.Errorf("got %d warnings about the denied account, want one for each set of feeds", warnings)
	}
	if got := h.account("good"); got.Status != "Ready" {
		t.Errorf("the good account is %s: %s", got.Status, got.Message)
	}
}
