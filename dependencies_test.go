package vedette_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/vedette-io/vedette"

// TestForbiddenImports checks the dependencies between packages. Each row forbids direct and
// indirect imports, and gives the reason.
func TestForbiddenImports(t *testing.T) {
	rules := []struct {
		pkg, forbidden, reason string
	}{
		{".", module + "/", "the root package defines the domain types; it must not depend on packages that use them"},
		{"./wire", module + "/agent", "agent and server depend on the protocol; it must not depend on them"},
		{"./wire", module + "/server", "agent and server depend on the protocol; it must not depend on them"},
		{"./agent/...", module + "/server", "agent and server communicate only through the protocol in wire"},
		{"./server/...", module + "/agent", "agent and server communicate only through the protocol in wire"},
		{"./agent/...", "modernc.org/sqlite", "the agent keeps its state in memory only; it must not need a database driver"},
		{"./agent/...", "github.com/jackc/pgx", "the agent keeps its state in memory only; it must not need a database driver"},
		{"./agent/...", "github.com/go-sql-driver", "the agent keeps its state in memory only; it must not need a database driver"},
		{"./server/...", "k8s.io/client-go", "the server has no access to clusters; only agents send requests to API servers"},
		{"./agent/outbox", "google.golang.org/", "the outbox stores changes as bytes; only the uplink uses gRPC"},
		{"./agent/outbox", "github.com/prometheus/", "the outbox is measured by its users; only metrics knows Prometheus"},
		{"./agent/uplink", "github.com/prometheus/", "the uplink reports to an interface; only metrics knows Prometheus"},
		{"./agent/watch", "github.com/prometheus/", "watches are counted by the agent; only metrics knows Prometheus"},
		{"./agent/redact", "google.golang.org/", "redaction takes and returns bytes, without Kubernetes or gRPC types"},
		{"./agent/redact", "k8s.io/", "redaction takes and returns bytes, without Kubernetes or gRPC types"},
		{"./agent/jsonstream", module, "jsonstream is a general library for JSON; it must not depend on packages that use it"},
		{"./agent/jsonstream", "k8s.io/", "jsonstream must not decode objects into Kubernetes types, because these take more memory"},
		{"./agent/kube", module + "/agent/watch", "feeds and operations share the client, so it must not depend on either"},
		{"./agent/kube", module + "/agent/operate", "feeds and operations share the client, so it must not depend on either"},
		{"./agent/kube", "k8s.io/client-go/kubernetes", "typed clients add 22 MB and do not support custom resources"},
		{"./agent/kube", "google.golang.org/grpc", "only the uplink connects to the server"},
		{"./agent/watch", module + "/agent/operate", "a change to operations must not break feeds"},
		{"./agent/watch", "google.golang.org/grpc", "only the uplink connects to the server"},
		{"./agent/rbac", module + "/agent/operate", "rbac names the rights of operations; it must not execute any"},
		{"./agent/operate", module + "/agent/watch", "a change to feeds must not break operations"},
		{"./agent/operate/manifest", module + "/agent/", "manifest parses manifests without access to a cluster"},
		{"./agent/operate/apply", module + "/agent/kube", "apply merges objects without I/O; only operate sends requests"},
		{"./agent/operate/artifact", module + "/agent/kube", "artifact chooses versions without I/O; only operate sends requests"},
		{"./agent/operate", "google.golang.org/grpc", "only the uplink connects to the server"},
		{"./agent/operate", "k8s.io/kubectl", "kubectl's packages add 71 MB; operate implements their behavior, and tests compare it with kubectl"},
		{"./agent/operate", "k8s.io/client-go/kubernetes", "typed clients add 22 MB and do not support custom resources"},
		{"./agent/bearer", "google.golang.org/", "bearer returns tokens; only the uplink sends them over gRPC"},
		{"./agent/uplink", "k8s.io/", "only agent/kube sends requests to API servers"},
		{"./server/ingest", "google.golang.org/", "ingest takes domain types; only agentserver uses gRPC"},
		{"./agent/executor", "google.golang.org/", "the executor runs operations and keeps outcomes; only the uplink uses gRPC"},
		{"./agent/executor", "k8s.io/", "the executor runs operations and keeps outcomes; only operate sends requests to API servers"},
		{"./server/assignment", "google.golang.org/", "assignment decides which agent reports an account; only agentserver uses gRPC"},
		{"./server/dispatch", "google.golang.org/", "dispatch decides which agent gets an operation; only agentserver uses gRPC"},
		{"./server/task", "google.golang.org/", "tasks must not depend on how operations reach an agent"},
		{"./server/task", module + "/server/dispatch", "tasks execute operations through an interface, so that tests can implement it"},
		{"./server/artifacts", module + "/server/store", "artifacts are fetched from other services; they do not depend on clusters"},
		{"./server/artifacts", "google.golang.org/grpc", "libraries that bring gRPC for buckets add 6 MB; one GET is enough"},
		{"./server/artifacts", "helm.sh/helm", "Helm's packages add 17 MB for parsing one index"},
		{"./server/artifacts/egress", module, "egress is a general HTTP client; it must not depend on packages that use it"},
		{"./server/manifest", module + "/server/store", "deployment rules do no I/O; they get data from the interface Cluster"},
		{"./server/manifest", "google.golang.org/", "deployment rules do no I/O; they get data from the interface Cluster"},
		{"./server/upstream", module + "/server/dispatch", "upstream decides who answers; operations run in server/task"},
		{"./server/upstream", "google.golang.org/grpc", "upstream speaks HTTP; only agentserver uses gRPC"},
		{"./internal/secret", "github.com/hashicorp", "each engine has a package of its own, so that the libraries of vendors stay apart"},
		{"./internal/secret", "github.com/aws", "each engine has a package of its own, so that the libraries of vendors stay apart"},
		{"./internal/secret", module + "/internal/configfile", "the resolver takes references and returns texts; engines reads its settings"},
		{"./internal/secret/...", "k8s.io/", "Secrets are read by one GET, so that the server has the engine too"},
		{"./internal/secret/...", "google.golang.org/grpc", "libraries that bring gRPC for buckets add 6 MB; one GET is enough"},
		{"./internal/configfile", module + "/internal/secret", "a configuration is read without engines; a function resolves references"},
		{"./internal/bucket", module + "/server", "programs share the requests for buckets"},
		{"./internal/cli/...", module + "/agent", "commands send requests to a server; only `vedette up` in cmd/vedette runs an agent"},
		{"./internal/cli/...", module + "/server/store", "commands use a server's REST API; only the server reads its database"},
		{"./internal/cli/...", "google.golang.org/grpc", "commands use a server's REST API, not gRPC"},
		{"./internal/keypair", "google.golang.org/grpc", "certificates are for HTTP too; only internal/keypair/grpctls knows gRPC"},
		{"./internal/command", module + "/agent", "command runs any program; it must not know whose credentials it prints"},
		{"./internal/command", module + "/internal/configfile", "command runs any program; it must not know whose credentials it prints"},
		{"./internal/fair", module, "a line counts units of anything; it must not depend on what they are"},
		{"./internal/reload", module, "reload watches files, whatever they contain; it must not depend on what is read from them"},
		{"./internal/configload", module + "/agent", "both programs load their configurations by it; it must not depend on either"},
		{"./internal/configload", module + "/server", "both programs load their configurations by it; it must not depend on either"},
		{"./internal/configreload", module + "/agent", "configreload has what programs share; it must not depend on their configurations"},
		{"./internal/configreload", module + "/server", "configreload has what programs share; it must not depend on their configurations"},
		{"./internal/probe", module, "probe prints what others try; it must not depend on them"},
		{"./internal/cli/output", "github.com/spf13/cobra", "output formats text; commands parse flags"},
		{"./internal/cli/describe", module + "/internal/client", "describe formats a pod template; it does not send requests"},
		{"./internal/tracing", "go.opentelemetry.io/otel/sdk", "packages start spans by OpenTelemetry's API; only tracing/otlp exports them"},
		{"./internal/tracing", "google.golang.org/", "packages without gRPC start spans too; only tracing/otlp exports them over gRPC"},
		{"./internal/admin", module + "/agent", "admin is shared by both programs; it must not depend on either"},
		{"./internal/admin", module + "/server", "admin is shared by both programs; it must not depend on either"},
		{"./internal/compare", module + "/", "comparisons ask servers by REST, as Spinnaker does; they must not know how ours answers"},
		{"./server/store", "google.golang.org/grpc", "the store uses SQL, not gRPC"},
		{"./server/store", "github.com/prometheus/", "the store reports to functions; only metrics knows Prometheus"},
		{"./server/ingest", "github.com/prometheus/", "a store that measures is passed to ingest; only metrics knows Prometheus"},
		{"./internal/metricset", module + "/agent", "both programs use it"},
		{"./internal/metricset", module + "/server", "both programs use it"},
		{"./server/store/admission", "database/sql", "admission decides who may write, and when; only the store itself uses SQL"},
		{"./server/store/namefilter", "database/sql", "a filter has names in memory; only the store itself uses SQL"},
		{"./server/store/overlay", "database/sql", "the overlay decides which changes are stale; only the store itself uses SQL"},
		{"./server/store/overlay", module + "/server/store/codec", "the overlay compares versions; it must not decode rows"},
		{"./server/...", module + "/bench", "benchmarks measure the programs; only tests may use their data"},
		{"./cmd/...", module + "/bench", "benchmarks measure the programs; only tests may use their data"},
		{"./server/store/codec", "database/sql", "codec encodes objects as bytes; only the store itself uses SQL"},
		{"./server/infrastructure", module + "/server/clouddriver", "infrastructure relates objects; only clouddriver knows requests and answers"},
		{"./server/front50", module + "/server/", "front50 sends requests to Front50; it must not depend on who shows what it answers"},
		{"./server/attributes", module + "/server/", "attributes is computed by the store and read by the views; it must not depend on them"},
	}
	deps := map[string][]string{}
	for _, rule := range rules {
		if deps[rule.pkg] == nil {
			deps[rule.pkg] = depsOf(t, rule.pkg)
		}
		for _, dep := range deps[rule.pkg] {
			if strings.HasPrefix(dep, rule.forbidden) && dep != strings.Replace(rule.pkg, ".", module, 1) {
				t.Errorf("%s must not import %s: %s", rule.pkg, dep, rule.reason)
			}
		}
	}
}

// TestDirectImports checks that only one of our packages imports a library directly.
func TestDirectImports(t *testing.T) {
	rules := []struct {
		library, importer, reason string
	}{
		{"k8s.io/client-go/rest", "/agent/kube", "all requests must go through agent/kube, because it adds timeouts, wiping and clear errors"},
		{"k8s.io/client-go/transport", "/agent/kube", "all requests must go through agent/kube, because it adds timeouts, wiping and clear errors"},
		{"github.com/prometheus/client_golang/prometheus/promhttp", "/internal/metricset", "both programs serve metrics in the same way, with the same limits"},
		{"github.com/go-git/go-git/v5/plumbing/format/packfile", "/server/artifacts", "packs must be checked before go-git unpacks them into memory"},
		{"gopkg.in/natefinch/lumberjack.v2", "/internal/logging", "only logging writes files of logs, because it reports when it cannot"},
		{"go.opentelemetry.io/otel/sdk/trace", "/internal/tracing/otlp", "only tracing/otlp exports spans; all others start them by the API"},
		{"github.com/fsnotify/fsnotify", "/internal/reload", "only reload watches files, because notifications alone miss changes"},
		{"k8s.io/client-go/tools/clientcmd", "/agent/kube", "only agent/kube reads kubeconfigs, because it caches them"},
	}
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./agent/...", "./server/...", "./cmd/...", "./internal/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		for _, rule := range rules {
			if fields[0] != module+rule.importer && slices.Contains(fields[1:], rule.library) {
				t.Errorf("%s must not import %s: %s", fields[0], rule.library, rule.reason)
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
			t.Errorf("%s: got no package comment, want one", path)
		}
	}
}
