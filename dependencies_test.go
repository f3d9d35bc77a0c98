package vedette_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/vedette-io/vedette"

// TestForbiddenImports holds the order of the packages. Each row forbids imports, direct
// or not, and says why.
func TestForbiddenImports(t *testing.T) {
	rules := []struct {
		pkg, forbidden, reason string
	}{
		{".", module + "/", "the root names things; it must not know who uses the names"},
		{"./wire", module + "/agent", "the wire is a language; it must not know its speakers"},
		{"./wire", module + "/server", "the wire is a language; it must not know its speakers"},
		{"./agent/...", module + "/server", "agent and server meet on the wire only"},
		{"./server/...", module + "/agent", "agent and server meet on the wire only"},
		{"./agent/...", "modernc.org/sqlite", "the agent keeps nothing but memory"},
		{"./agent/...", "github.com/jackc/pgx", "the agent keeps nothing but memory"},
		{"./agent/...", "github.com/go-sql-driver", "the agent keeps nothing but memory"},
		{"./server/...", "k8s.io/client-go", "the server holds no way into a cluster"},
		{"./agent/outbox", "google.golang.org/", "the outbox is pure: what it holds are bytes"},
		{"./agent/redact", "google.golang.org/", "redaction is bytes in, bytes out"},
		{"./agent/redact", "k8s.io/", "redaction is bytes in, bytes out"},
		{"./agent/watch", "google.golang.org/grpc", "only the uplink speaks to the server"},
		{"./agent/operate", "google.golang.org/grpc", "only the uplink speaks to the server"},
		{"./agent/operate", "k8s.io/kubectl", "kubectl's packages are 71 MB; what they do is done here, and tested against them"},
		{"./agent/operate", "k8s.io/client-go/kubernetes", "typed clients of all kinds are 22 MB, and know no custom one"},
		{"./agent/uplink", "k8s.io/", "only watch and operate speak to clusters"},
		{"./server/ingest", "google.golang.org/", "ingest takes words of the domain; the gate translates"},
		{"./agent/executor", "google.golang.org/", "the executor keeps operations; only the uplink uses gRPC"},
		{"./agent/executor", "k8s.io/", "the executor keeps operations; only operate calls the API server"},
		{"./server/assignment", "google.golang.org/", "assignment decides; only agentserver uses gRPC"},
		{"./server/dispatch", "google.golang.org/", "dispatch decides; the gate speaks"},
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
			if strings.HasPrefix(dep, rule.forbidden) {
				t.Errorf("%s imports %s: %s", rule.pkg, dep, rule.reason)
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

// TestPackageComments asks every package to say what it is.
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
