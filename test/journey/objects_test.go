package journey

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/test/controlplane"
)

// startTwo starts a server, and an agent with the accounts one and two, which are two clusters. Two has no controllers.
func startTwo(t *testing.T) (*stack, *controlplane.Plane) {
	t.Helper()
	other, err := controlplane.Start(t.Context(), controlplane.Options{Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Stop() })
	h := startServer(t, assignment.BalanceConfig{})
	h.agent = agent.New(agent.Config{
		Uplink: uplink.Config{Target: h.srv.GRPC().String(), Creds: insecure.NewCredentials(), Agent: "a1"},
		Accounts: []agent.Account{{Name: "one", Access: kube.Access{KubeconfigFile: plane.Kubeconfig()}},
			{Name: "two", Access: kube.Access{KubeconfigFile: other.Kubeconfig()}}},
	}, h.newLogger("agent"))
	h.stopAgent = runInBackground(t, h.agent.Run)
	t.Cleanup(func() { h.stopAgent() })
	h.awaitLive(24)
	return h, other
}

// twin runs the same commands by kubectl in one cluster, and by vedette in two.
type twin struct {
	*cli
	file string
}

// compare checks that vedette prints in each account what kubectl prints, in other namespaces of the same name but for the
// last letter, with the same exit code.
func (v twin) compare(stdin, command string) {
	v.t.Helper()
	if err := os.WriteFile(v.file, []byte(strings.ReplaceAll(stdin, "NAMESPACE", "twin-k")), 0o600); err != nil {
		v.t.Fatal(err)
	}
	theirs, err := plane.KubectlCombinedOutput(v.t.Context(), strings.Fields(strings.Replace(command, "-f -", "-f "+v.file, 1)+" -n twin-k")...)
	want := ""
	if err == nil {
		for _, account := range []string{"one: ", "two: "} {
			for line := range strings.Lines(string(theirs)) {
				want += account + line
			}
		}
	}
	confirm := ""
	if strings.Contains(command, "--all ") {
		confirm = " --yes"
	}
	code, ours := v.run(strings.ReplaceAll(stdin, "NAMESPACE", "twin-v"), command+" -n twin-v --account one,two"+confirm)
	if strings.HasPrefix(command, "wait ") { // accounts are waited for at once, so the order is that of the events
		ours = sortLines(ours)
	}
	if strings.HasPrefix(command, "patch ") && strings.HasSuffix(command, "--dry-run=server") { // kubectl does not say so here
		ours = strings.ReplaceAll(ours, " (server dry run)", "")
	}
	if (err != nil) != (code != 0) || want != "" && ours != want || want == "" && err == nil && ours != "" {
		v.t.Errorf("$ vedette %s\n%s(exit code %d)\n$ kubectl\n%s(%v)", command, ours, code, theirs, err)
	}
	for _, account := range []string{"one", "two"} {
		if err != nil && !strings.Contains(ours, account) {
			v.t.Errorf("$ vedette %s\n%s\nwant the account %s named", command, ours, account)
		}
	}
}

func sortLines(text string) string {
	lines := slices.Sorted(strings.Lines(text))
	return strings.Join(lines, "")
}

const twinManifests = `apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: NAMESPACE, labels: {part: twin}}
data: {sky: COLOUR}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NAMESPACE}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: first, image: "first:1"}]
      containers: [{name: main, image: "web:1"}, {name: side, image: "side:1"}]
`

// TestObjectCommandsMatchKubectl runs commands that change or compare objects in two clusters, and compares what they
// print with kubectl.
func TestObjectCommandsMatchKubectl(t *testing.T) {
	for _, name := range []string{"twin-k", "twin-v"} {
		if err := plane.Create(t.Context(), "/api/v1/namespaces", controlplane.Object{"metadata": controlplane.Object{"name": name}}); err != nil {
			t.Fatal(err)
		}
	}
	h, other := startTwo(t)
	if err := other.Create(t.Context(), "/api/v1/namespaces", controlplane.Object{"metadata": controlplane.Object{"name": "twin-v"}}); err != nil {
		t.Fatal(err)
	}
	v := twin{buildCLI(t, "http://"+h.srv.REST().String()), filepath.Join(t.TempDir(), "manifests.yaml")}
	blue, red := strings.Replace(twinManifests, "COLOUR", "blue", 1), strings.Replace(twinManifests, "COLOUR", "red", 1)
	configMapOf := func(text string) string { return strings.SplitN(text, "---\n", 2)[0] }

	v.compare(blue, "create -f - --dry-run=server")
	v.compare(blue, "create -f -")
	v.compare(blue, "create -f -") // they exist
	if _, out := v.run(strings.ReplaceAll(blue, "NAMESPACE", "twin-v"), "create -f - --account one,two"); strings.Count(out, `configmaps "c" already exists`) != 2 {
		t.Errorf("got %s, want AlreadyExists of both accounts", out)
	}
	for _, command := range []string{
		"label deployment web tier=front", "label deployment web tier=front", "label deployment web tier=back", "label deployment web tier=back --overwrite",
		"label deployment web tier- none-", "label deployment/web configmap/c a=b", "label configmaps -l part=twin b=c d-", "label deployments --all all=yes",
		"label deployment web a=b --resource-version 1", "label deployment web e=f --dry-run=server", "label deployment missing a=b",
		"label configmap c part=twin b- g=h", "label deployment web tier=new --overwrite --resource-version 1",
		"annotate deployment web tier=new --resource-version 1",
		"annotate configmap c note=words", "annotate configmap c note=words", "annotate configmap c note=others", "annotate configmap c note=others --overwrite",
		"annotate configmap c note-", "annotate configmap c missing-",
		`patch deployment web -p {"spec":{"replicas":2}}`, `patch deployment web -p {"spec":{"replicas":2}}`, `patch deployment web -p {"spec":{"replicas":3}} --dry-run=server`,
		`patch deployment web -p {"spec":{"replicas":2}} --dry-run=server`, `patch configmap c --type merge -p {"data":{"more":"words"}}`,
		`patch configmap c --type json -p [{"op":"remove","path":"/data/more"}]`, `patch configmap c --type json -p [{"op":"remove","path":"/data/more"}]`,
		`patch configmap c --type merge -p {"data":7}`,
		"set image deployment/web main=web:2 first=first:2", "set image deployment/web main=web:2", "set image deployment/web *=web:3 --dry-run=server",
		"set image deployment/web none=web:3", "set image configmap/c main=web:3",
		"wait deployment/web --for=jsonpath={.spec.replicas}=2", "wait deployment web --for=jsonpath={.metadata.name}", "wait deployment/web --for=condition=None --timeout=1s",
		"wait deployment/web --for=condition=None --timeout=0", "wait configmap/missing --for=delete", "wait configmap/missing --for=condition=Ready", "wait configmap/c --for=create",
	} {
		v.compare("", command)
	}
	v.compare(configMapOf(red), "replace -f -")
	v.compare(strings.ReplaceAll(configMapOf(red), "name: c", "name: missing"), "replace -f -")
	if got := v.managers("configmaps/c"); !slices.Contains(got, "kubectl-replace") {
		t.Errorf("got the managers %v, want kubectl-replace", got)
	}

	for _, text := range []string{blue, red} {
		v.compareDiff(t.Context(), configMapOf(text))
	}
	code, out := v.run(strings.ReplaceAll(configMapOf(blue), "NAMESPACE", "twin-v"), "diff -f - --account one,two")
	if code != 1 || !strings.HasPrefix(out, "v1.ConfigMap.twin-v.c in 2 accounts: one,two\n") || strings.Count(out, "+  sky: blue") != 1 {
		t.Errorf("diff in two accounts: got %d %s", code, out)
	}
	if code, out := v.run("kind: Odd\napiVersion: v1\nmetadata: {name: x}", "diff -f - --account one,two"); code != 2 || strings.Count(out, "no kind") != 2 {
		t.Errorf("diff of an unknown kind: got %d %s, want the exit code 2", code, out)
	}
	v.testSecretDiff()
	v.testAccountsAgainst()
	v.testAppliesOfOutput()
	v.testPrune()

	code, out = v.run("", "auth can-i create deployments -n twin-v --account one,two")
	if code != 0 || strings.Join(strings.Fields(out), " ") != "ACCOUNT CLUSTER SERVER REASON one yes yes two yes yes" {
		t.Errorf("can-i: got %d %s", code, out)
	}
	if code, out := v.run("", "auth can-i --list -n twin-v --account one"); code != 0 || !strings.Contains(out, "[get list") && !strings.Contains(out, "[*]") {
		t.Errorf("can-i --list: got %d %s", code, out)
	}

	v.testWaits(t.Context(), h)
}

// managers returns the field managers of an object of one.
func (v twin) managers(path string) (all []string) {
	var o struct {
		Metadata struct{ ManagedFields []struct{ Manager string } }
	}
	if err := plane.Get(v.t.Context(), "/api/v1/namespaces/twin-v/"+path, &o); err != nil {
		v.t.Fatal(err)
	}
	for _, entry := range o.Metadata.ManagedFields {
		all = append(all, entry.Manager)
	}
	return all
}

// changedLines returns the lines of a unified diff that were added or removed.
func changedLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line == "-null\n" || strings.Contains(line, "  uid: ") || strings.Contains(line, "creationTimestamp: ") {
			continue // kubectl shows a Secret that does not exist as null
		}
		if strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "---") {
			lines = append(lines, strings.ReplaceAll(line, "twin-v", "twin-k"))
		}
	}
	return lines
}

// compareDiff compares the differences of one account with those that kubectl shows.
func (v twin) compareDiff(ctx context.Context, manifest string) {
	v.t.Helper()
	if err := os.WriteFile(v.file, []byte(strings.ReplaceAll(manifest, "NAMESPACE", "twin-k")), 0o600); err != nil {
		v.t.Fatal(err)
	}
	theirs, err := plane.KubectlCombinedOutput(ctx, "diff", "-f", v.file)
	code, ours := v.run(strings.ReplaceAll(manifest, "NAMESPACE", "twin-v"), "diff -f - --account one")
	if (err != nil) != (code == 1) || code > 1 || !slices.Equal(changedLines(ours), changedLines(string(theirs))) {
		v.t.Errorf("diff: got %d\n%s\nwant as kubectl (%v)\n%s", code, ours, err, theirs)
	}
}

// testSecretDiff checks that differences of a Secret are masked as by kubectl.
func (v twin) testSecretDiff() {
	v.t.Helper()
	secret := func(data string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: NAMESPACE}\ntype: Opaque\ndata: {" + data + "}\n"
	}
	v.compareDiff(v.t.Context(), secret("same: b25l"))
	if err := os.WriteFile(v.file, []byte(strings.ReplaceAll(secret("same: b25l, other: dHdv, gone: dGhyZWU="), "NAMESPACE", "twin-k")), 0o600); err != nil {
		v.t.Fatal(err)
	}
	if out, err := plane.KubectlCombinedOutput(v.t.Context(), "apply", "-f", v.file); err != nil {
		v.t.Fatal(string(out))
	}
	if code, out := v.run(strings.ReplaceAll(secret("same: b25l, other: dHdv, gone: dGhyZWU="), "NAMESPACE", "twin-v"), "apply -f - --account one"); code != 0 {
		v.t.Fatal(out)
	}
	v.compareDiff(v.t.Context(), secret("same: b25l, other: Zm91cg==, new: Zml2ZQ=="))
	v.compareDiff(v.t.Context(), secret("same: b25l, other: dHdv, gone: dGhyZWU="))
}

// testAccountsAgainst compares the clusters.
func (v twin) testAccountsAgainst() {
	v.t.Helper()
	if code, out := v.run("", "diff --all-accounts-against one configmap c -n twin-v"); code != 0 || out != "1 object is equal in 2 accounts.\n" {
		v.t.Errorf("equal: got %d %s", code, out)
	}
	for _, command := range []string{`patch configmap c -n twin-v --account two --type merge -p {"data":{"sky":"green"}}`, "label deployment web -n twin-v --account two tier=odd"} {
		if code, out := v.run("", command); code != 0 {
			v.t.Fatal(out)
		}
	}
	code, out := v.run("", "diff --all-accounts-against one configmaps,deployments -n twin-v")
	for _, want := range []string{"v1.ConfigMap.twin-v.c differs from one in 1 account: two\n", "-  sky: red\n+  sky: green\n",
		"apps.v1.Deployment.twin-v.web differs from one in 1 account: two\n", "+    tier: odd\n", "v1.ConfigMap.twin-v.kube-root-ca.crt is in one, but not in 1 account: two\n"} {
		if code != 1 || !strings.Contains(out, want) {
			v.t.Errorf("different: got %d %s, want %q", code, out, want)
		}
	}
	if code, out := v.run("", "diff --all-accounts-against gone configmaps -n twin-v"); code != 2 || !strings.Contains(out, `there is no account "gone"`) {
		v.t.Errorf("unknown account: got %d %s", code, out)
	}
}

// versions returns the resourceVersions of what is printed.
func versions(text string) (all []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "resourceVersion: ") && !strings.Contains(line, `""`) {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

// testAppliesOfOutput applies what get prints of two accounts, without --account: cached kinds, and others.
func (v twin) testAppliesOfOutput() {
	v.t.Helper()
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: twin-v}\nspec: {ports: [{port: 80}]}\n"
	secret := "---\napiVersion: v1\nkind: Secret\nmetadata: {name: of-output, namespace: twin-v}\nstringData: {key: words}\n"
	v.wantOutput("two: secret/of-output created", service+secret, "apply -f - --account one,two")
	for _, kind := range []string{"services", "configmaps", "secrets"} {
		get := "get " + kind + " -n twin-v --account one,two -o yaml"
		_, before := v.run("", get)
		if len(versions(before)) < 2 || strings.Count(before, "vedette.io/account: two") < 1 {
			v.t.Fatalf("$ vedette %s\n%s", get, before)
		}
		code, out := v.run(before, "apply -f -")
		if code != 0 || strings.Count(out, " unchanged") != len(versions(before)) {
			v.t.Errorf("got %d %s, want every object unchanged", code, out)
		}
		if _, after := v.run("", get); after != before {
			v.t.Errorf("got %s\nwant %s", after, before)
		}
	}
	if out, err := plane.Kubectl(v.t.Context(), "get", "configmap,service,secret", "-n", "twin-v", "-o", "yaml"); err != nil || strings.Contains(string(out), "vedette.io/account") ||
		!strings.Contains(string(out), "key: d29yZHM=") {
		v.t.Errorf("got %s, %v, want the data of the Secret and no annotation", out, err)
	}
}

// testPrune prunes ConfigMaps and Secrets that were applied server-side, as they are by default.
func (v twin) testPrune() {
	v.t.Helper()
	object := func(kind, name string) string {
		return "---\napiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: twin-v, labels: {part: pruned}}\n"
	}
	kept := object("ConfigMap", "kept")
	v.wantOutput("two: secret/old created", kept+object("ConfigMap", "old")+object("Secret", "old"), "apply -f - --account one,two")
	if code, out := v.run(object("ConfigMap", "by-hand"), "create -f - --account one,two"); code != 0 {
		v.t.Fatal(out)
	}
	code, out := v.run(kept, "apply -f - --account one,two --prune -l part=pruned")
	for _, want := range []string{"one: configmap/old pruned\n", "one: secret/old pruned\n", "two: configmap/old pruned\n", "two: secret/old pruned\n",
		"one: configmap/by-hand in twin-v is not pruned: it was never applied; it was written by kubectl-create\n"} {
		if code != 0 || !strings.Contains(out, want) {
			v.t.Errorf("got %d %s, want %q", code, out, want)
		}
	}
}

// testWaits waits in a cluster with controllers, for what happens later.
func (v twin) testWaits(ctx context.Context, h *stack) {
	v.t.Helper()
	ended := make(chan string, 3)
	waits := map[string]string{ // by what they read
		"/apis/apps/v1/namespaces/twin-v/deployments/web": "wait deployment/web -n twin-v --account one --for=condition=Available --timeout 2m",
		"/api/v1/namespaces/twin-v/configmaps/later":      "wait configmap/later -n twin-v --account one --for=create --timeout 2m",
		"/api/v1/namespaces/twin-v/configmaps/c":          "wait configmap/c -n twin-v --account one --for=delete --timeout 2m",
	}
	readsOf := func(path string) int {
		return strings.Count(h.log.String(), "account=one method=GET path="+path+" status=")
	}
	for path, command := range waits {
		before := readsOf(path)
		go func() { _, out := v.run("", command); ended <- out }()
		h.await("the command to read "+path, func() bool { return readsOf(path) > before })
	}
	if err := plane.Create(ctx, "/api/v1/namespaces/twin-v/configmaps", controlplane.Object{"metadata": controlplane.Object{"name": "later"}}); err != nil {
		v.t.Fatal(err)
	}
	if err := plane.Delete(ctx, "/api/v1/namespaces/twin-v/configmaps/c"); err != nil {
		v.t.Fatal(err)
	}
	var all []string
	for range 3 {
		all = append(all, <-ended)
	}
	slices.Sort(all)
	if got, want := strings.Join(all, ""), "configmap/c condition met\nconfigmap/later condition met\ndeployment.apps/web condition met\n"; got != want {
		v.t.Errorf("got %q, want %q", got, want)
	}
}
