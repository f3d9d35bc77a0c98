package vedette_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/vedette-io/vedette"

// TestForbiddenImports checks the order of the packages. Each row forbids imports, direct
// and indirect ones, and gives the reason.
func TestForbiddenImports(t *testing.T) {
	rules := []struct {
		pkg, forbidden, reason string
	}{
		{".", module + "/", "the root names things; it must not know who uses the names"},
		{"./wire", module + "/agent", "agent and server use the protocol; it must not depend on them"},
		{"./wire", module + "/server", "agent and server use the protocol; it must not depend on them"},
		{"./agent/...", module + "/server", "agent and server meet on the wire only"},
		{"./server/...", module + "/agent", "agent and server meet on the wire only"},
		{"./agent/...", "modernc.org/sqlite", "the agent keeps nothing but memory"},
		{"./agent/...", "github.com/jackc/pgx", "the agent keeps nothing but memory"},
		{"./agent/...", "github.com/go-sql-driver", "the agent keeps nothing but memory"},
		{"./server/...", "k8s.io/client-go", "the server holds no way into a cluster"},
		{"./agent/outbox", "google.golang.org/", "the outbox is pure: what it holds are bytes"},
		{"./agent/redact", "google.golang.org/", "redaction is bytes in, bytes out"},
		{"./agent/redact", "k8s.io/", "redaction is bytes in, bytes out"},
		{"./agent/jsonstream", module, "jsonstream is a library for JSON: it must not depend on who uses it"},
		{"./agent/jsonstream", "k8s.io/", "objects are not decoded into Kubernetes types, because these cost memory per object"},
		{"./agent/kube", module + "/agent/watch", "feeds and operations share the client, so the client must not know either"},
		{"./agent/kube", module + "/agent/operate", "feeds and operations share the client, so the client must not know either"},
		{"./agent/kube", "k8s.io/client-go/kubernetes", "typed clients of all kinds are 22 MB, and know no custom one"},
		{"./agent/kube", "google.golang.org/grpc", "only the uplink speaks to the server"},
		{"./agent/watch", module + "/agent/operate", "a change to operations must not break feeds"},
		{"./agent/watch", "google.golang.org/grpc", "only the uplink speaks to the server"},
		{"./agent/operate", module + "/agent/watch", "a change to feeds must not break operations"},
		{"./agent/operate/manifest", module + "/agent/", "manifests are read without a cluster"},
		{"./agent/operate/apply", module + "/agent/kube", "merging is pure: operate sends the requests"},
		{"./agent/operate/artifact", module + "/agent/kube", "choosing a version is pure: operate sends the requests"},
		{"./agent/operate", "google.golang.org/grpc", "only the uplink speaks to the server"},
		{"./agent/operate", "k8s.io/kubectl", "kubectl's packages are 71 MB; what they do is done here, and tested against them"},
		{"./agent/operate", "k8s.io/client-go/kubernetes", "typed clients of all kinds are 22 MB, and know no custom one"},
		{"./agent/uplink", "k8s.io/", "only agent/kube talks to API servers"},
		{"./server/ingest", "google.golang.org/", "ingest takes domain types; only agentserver uses gRPC"},
		{"./agent/executor", "google.golang.org/", "the executor keeps operations; only the uplink uses gRPC"},
		{"./agent/executor", "k8s.io/", "the executor keeps operations; only operate calls the API server"},
		{"./server/assignment", "google.golang.org/", "assignment decides; only agentserver uses gRPC"},
		{"./server/dispatch", "google.golang.org/", "dispatch decides; only agentserver uses gRPC"},
		{"./server/task", "google.golang.org/", "tasks know operations, not the way that they take"},
		{"./server/task", module + "/server/dispatch", "tasks hand operations to whoever carries them out, which tests play"},
		{"./server/manifest", module + "/server/store", "what becomes of manifests is rules; what they must know they ask a Cluster"},
		{"./server/manifest", "google.golang.org/", "what becomes of manifests is rules; what they must know they ask a Cluster"},
		{"./server/store", "google.golang.org/grpc", "the store speaks SQL and nothing else"},
		{"./server/store/admission", "database/sql", "admission decides who may write; only the store itself uses SQL"},
		{"./server/store/overlay", "database/sql", "the overlay decides which changes are stale; only the store itself uses SQL"},
		{"./server/store/overlay", module + "/server/store/codec", "the overlay decides by versions and never looks into rows"},
		{"./server/store/codec", "database/sql", "codec turns objects into bytes; only the store itself uses SQL"},
	}
	deps := map[string][]string{}
	for _, rule := range rules {
		if deps[rule.pkg] == nil {
			deps[rule.pkg] = depsOf(t, rule.pkg)
		}
		for _, dep := range deps[rule.pkg] {
			if strings.HasPrefix(dep, rule.forbidden) && dep != strings.Replace(rule.pkg, ".", module, 1) {
				t.Errorf("%s imports %s: %s", rule.pkg, dep, rule.reason)
			}
		}
	}
}

// TestDirectImports checks that only one package of ours imports a library itself.
func TestDirectImports(t *testing.T) {
	rules := []struct {
		library, importer, reason string
	}{
		{"k8s.io/client-go/rest", "/agent/kube", "timeouts, wiping and explained errors apply only if all requests go through agent/kube"},
		{"k8s.io/client-go/transport", "/agent/kube", "timeouts, wiping and explained errors apply only if all requests go through agent/kube"},
		{"k8s.io/client-go/tools/clientcmd", "/agent/kube", "kubeconfigs are read in one place, because they are cached there"},
	}
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./agent/...", "./server/...", "./cmd/...", "./internal/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		for _, rule := range rules {
			if fields[0] != module+rule.importer && slices.Contains(fields[1:], rule.library) {
				t.Errorf("%s imports %s: %s", fields[0], rule.library, rule.reason)
			}
		}
	}
}

func depsOf(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", pkg).Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", pkg, err)
	}
	return strings.Fields(string(out))
}

// TestPackageComments checks that every package has a comment.
func TestPackageComments(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}	{{.Doc}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		path, doc, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if doc == "" && !slices.Contains([]string{module}, path) {
			t.Errorf("%s has no package comment", path)
		}
	}
}
