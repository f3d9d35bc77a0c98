package vedette_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/vedette-io/vedette"

// TestPackagesHaveNoForbiddenImports checks the dependencies between packages. Each row forbids direct and
// indirect imports, and gives the reason.
func TestPackagesHaveNoForbiddenImports(t *testing.T) {
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
		{"./server/...", "k8s.io/client-go/kubernetes", "typed clients add 22 MB; server/discover sends two kinds of requests"},
		{"./server/...", "k8s.io/client-go/tools/cache", "informers keep whole objects; server/discover keeps addresses"},
		{"./server/discover", module + "/server/", "discover lists servers; it must not depend on who asks for them"},
		{"./server/discover", "google.golang.org/grpc", "discover lists servers; only peer sends requests to them"},
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
		{"./agent/cloud", "k8s.io/", "cloud gets tokens; only agent/kube sends them to API servers"},
		{"./agent/cloud", module + "/agent/", "cloud knows token services only; agent/kube decides which account needs which token"},
		{"./agent/watch", module + "/agent/operate", "a change to operations must not break feeds"},
		{"./agent/watch", "google.golang.org/grpc", "only the uplink connects to the server"},
		{"./agent/rbac", module + "/agent/operate", "rbac names the rights of operations; it must not execute any"},
		{"./agent/operate", module + "/agent/watch", "a change to feeds must not break operations"},
		{"./agent/operate/manifest", module + "/agent/", "manifest parses manifests without access to a cluster"},
		{"./agent/operate/apply", module + "/agent/kube", "apply merges objects without I/O; only request sends requests"},
		{"./agent/operate/versioning", module + "/agent/kube", "versioning chooses versions without I/O; only request sends requests"},
		{"./agent/operate", "google.golang.org/grpc", "only the uplink connects to the server"},
		{"./agent/operate", "k8s.io/kubectl", "kubectl's packages add 71 MB; operate implements their behavior, and tests compare it with kubectl"},
		{"./agent/operate", "k8s.io/client-go/kubernetes", "typed clients add 22 MB and do not support custom resources"},
		{"./agent/bearer", "google.golang.org/", "bearer returns tokens; only the uplink sends them over gRPC"},
		{"./agent/uplink", "k8s.io/", "only agent/kube sends requests to API servers"},
		{"./server/ingest", "google.golang.org/", "ingest takes domain types; only agentserver uses gRPC"},
		{"./agent/executor", "google.golang.org/", "the executor runs operations and keeps outcomes; only the uplink uses gRPC"},
		{"./agent/executor", "k8s.io/", "the executor runs operations and keeps outcomes; only operate sends requests to API servers"},
		{"./server/assignment", "google.golang.org/", "assignment decides which agent reports an account; only agentserver uses gRPC"},
		{"./server/assigner", "google.golang.org/", "assigner tells agents their roles through a function; only agentserver uses gRPC"},
		{"./server/dispatch", "google.golang.org/", "dispatch decides which agent gets an operation; only agentserver and peer use gRPC"},
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
		{"./internal/cli/...", module + "/agent", "commands send requests to a server; only cmd/vedette/up runs an agent"},
		{"./cmd/vedette/read", module + "/agent", "commands send requests to a server; only cmd/vedette/up runs an agent"},
		{"./cmd/vedette/change", module + "/agent", "commands send requests to a server; only cmd/vedette/up runs an agent"},
		{"./cmd/vedette/comparison", module + "/agent", "commands send requests to a server; only cmd/vedette/up runs an agent"},
		{"./cmd/vedette/fleet", module + "/agent", "commands send requests to a server; only cmd/vedette/up runs an agent"},
		{"./cmd/vedette/fleet", module + "/server/store", "commands use a server's REST API; only the server reads its database"},
		{"./cmd/vedette/read", module + "/cmd/vedette/", "families of commands share internal/cli only"},
		{"./cmd/vedette/change", module + "/cmd/vedette/", "families of commands share internal/cli only"},
		{"./cmd/vedette/comparison", module + "/cmd/vedette/", "families of commands share internal/cli only"},
		{"./cmd/vedette/fleet", module + "/cmd/vedette/", "families of commands share internal/cli only"},
		{"./cmd/vedette/migration", module + "/cmd/vedette/", "families of commands share internal/cli only"},
		{"./cmd/vedette/up", module + "/cmd/vedette/", "families of commands share internal/cli only"},
		{"./cmd/...", "k8s.io/kubectl", "kubectl's packages add 43 to 58 MB, and 50 MiB to each command; only tests compare with them"},
		{"./internal/cli/...", "k8s.io/cli-runtime/pkg/genericclioptions", "it brings clients of API servers, and 43 MB; printers has the templates"},
		{"./internal/cli/...", module + "/server/store", "commands use a server's REST API; only the server reads its database"},
		{"./internal/cli/...", "google.golang.org/grpc", "commands use a server's REST API, not gRPC"},
		{"./internal/keypair", "google.golang.org/grpc", "certificates are for HTTP too; only internal/keypair/grpctls knows gRPC"},
		{"./internal/command", module + "/agent", "command runs any program; it must not know whose credentials it prints"},
		{"./internal/command", module + "/internal/configfile", "command runs any program; it must not know whose credentials it prints"},
		{"./internal/fair", module, "a line counts units of anything; it must not depend on what they are"},
		{"./internal/filewatch", module, "filewatch watches files, whatever they contain; it must not depend on what is read from them"},
		{"./internal/configload", module + "/agent", "both programs load their configurations by it; it must not depend on either"},
		{"./internal/configload", module + "/server", "both programs load their configurations by it; it must not depend on either"},
		{"./internal/configreload", module + "/internal/secret", "agent and server show which configuration is in effect; they must not need the libraries of vendors"},
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
		{"./server/store/lease", "database/sql", "lease decides who may write; only the store itself uses SQL"},
		{"./server/store/namefilter", "database/sql", "a filter has names in memory; only the store itself uses SQL"},
		{"./server/store/writethrough", "database/sql", "writethrough decides which changes are stale; only the store itself uses SQL"},
		{"./server/store/writethrough", module + "/server/store/codec", "writethrough compares versions; it must not decode rows"},
		{"./server/store/commit", "database/sql", "a commit is what its callers report and see; only the store itself uses SQL"},
		{"./server/store/versions", "database/sql", "versions count in memory what has changed; only the store itself uses SQL"},
		{"./server/store/read", module + "/server/store/write", "what is read depends on the database, not on who wrote it"},
		{"./server/store/write", module + "/server/store/read", "what is written depends on the database, not on who reads it"},
		{"./server/store/history", module + "/server/store/write", "writers end operations; the history must not depend on them"},
		{"./server/store/sqldb", module + "/server/store/catalog", "all parts of the store use sqldb; it must not depend on any"},
		{"./server/store/sqldb", module + "/server/store/versions", "all parts of the store use sqldb; it must not depend on any"},
		{"./server/...", module + "/bench", "benchmarks measure the programs; only tests may use their data"},
		{"./cmd/...", module + "/bench", "benchmarks measure the programs; only tests may use their data"},
		{"./server/store/codec", "database/sql", "codec encodes objects as bytes; only the store itself uses SQL"},
		{"./server/infrastructure", module + "/server/clouddriver", "infrastructure relates objects; only clouddriver knows requests and answers"},
		{"./server/clouddriver/web", module + "/server/clouddriver/", "web has what families of endpoints share; it must not depend on one of them"},
		{"./server/clouddriver/applications", module + "/server/clouddriver/manifests", "families of endpoints share package web only"},
		{"./server/clouddriver/applications", module + "/server/clouddriver/search", "families of endpoints share package web only"},
		{"./server/clouddriver/manifests", module + "/server/clouddriver/applications", "families of endpoints share package web only"},
		{"./server/clouddriver/search", module + "/server/clouddriver/applications", "families of endpoints share package web only"},
		{"./server/clouddriver/search", module + "/server/clouddriver/manifests", "families of endpoints share package web only"},
		{"./server/front50", module + "/server/", "front50 sends requests to Front50; it must not depend on who shows what it answers"},
		{"./server/attributes", module + "/server/", "attributes is computed by the store and read by the views; it must not depend on them"},
	}
	deps := map[string][]string{}
	for _, rule := range rules {
		if deps[rule.pkg] == nil {
			deps[rule.pkg] = depsOf(t, rule.pkg)
		}
		for _, dep := range deps[rule.pkg] {
			if isUnder(dep, rule.forbidden) && dep != strings.Replace(rule.pkg, ".", module, 1) {
				t.Errorf("%s must not import %s: %s", rule.pkg, dep, rule.reason)
			}
		}
	}
}

// TestOnlyOnePackageImportsALibrary checks that only one of our packages imports a library directly.
func TestOnlyOnePackageImportsALibrary(t *testing.T) {
	rules := []struct {
		library, importers, reason string
	}{
		{"k8s.io/client-go/rest", "/agent/kube /server/discover", "all requests must go through agent/kube, because it adds timeouts, wiping and clear errors; discover adds deadlines"},
		{"k8s.io/client-go/transport", "/agent/kube", "all requests must go through agent/kube, because it adds timeouts, wiping and clear errors"},
		{"github.com/prometheus/client_golang/prometheus/promhttp", "/internal/metricset", "both programs serve metrics in the same way, with the same limits"},
		{"github.com/go-git/go-git/v5/plumbing/format/packfile", "/server/artifacts", "packs must be checked before go-git unpacks them into memory"},
		{"gopkg.in/natefinch/lumberjack.v2", "/internal/logging", "only logging writes files of logs, because it reports when it cannot"},
		{"go.opentelemetry.io/otel/sdk/trace", "/internal/tracing/otlp", "only tracing/otlp exports spans; all others start them by the API"},
		{"github.com/fsnotify/fsnotify", "/internal/filewatch", "only filewatch watches files, because notifications alone miss changes"},
		{"github.com/Azure/azure-sdk-for-go/sdk/azidentity", "/agent/cloud", "its errors quote what services answer; only cloud masks them"},
		{"github.com/aws/aws-sdk-go-v2/service/sts", "/agent/cloud", "only cloud presigns requests, and limits what STS answers"},
		{"k8s.io/client-go/tools/clientcmd", "/agent/kube /server/discover", "only agent/kube reads kubeconfigs, because it caches them; discover reads one, once"},
	}
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./agent/...", "./server/...", "./cmd/...", "./internal/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		for _, rule := range rules {
			if !slices.Contains(strings.Fields(rule.importers), strings.TrimPrefix(fields[0], module)) && slices.Contains(fields[1:], rule.library) {
				t.Errorf("%s must not import %s: %s", fields[0], rule.library, rule.reason)
			}
		}
	}
}

// TestStateMachinesDoNoIO checks that packages that are state machines do no I/O, read no clock and have no locks: events go in, effects
// come out, so that tests can run each order of events.
func TestStateMachinesDoNoIO(t *testing.T) {
	forbidden := []string{"context", "sync", "sync/atomic", "log/slog", "os", "net", module + "/server/store"}
	for _, dir := range []string{"server/assignment", "server/dispatch/lifecycle", "agent/lifecycle", "agent/watch/lifecycle"} {
		for _, dep := range depsOf(t, "./"+dir) {
			if (strings.HasPrefix(dep, module+"/server/") || strings.HasPrefix(dep, module+"/agent/")) && dep != module+"/"+dir {
				t.Errorf("%s imports %s", dir, dep)
			}
		}
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, imported := range parsed.Imports {
				if path, _ := strconv.Unquote(imported.Path.Value); slices.Contains(forbidden, path) {
					t.Errorf("%s imports %s", file, path)
				}
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				selector, ok := n.(*ast.SelectorExpr)
				if ok && fmt.Sprint(selector.X) == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "Sleep", "NewTimer", "NewTicker", "AfterFunc"}, selector.Sel.Name) {
					t.Errorf("%s uses time.%s", file, selector.Sel.Name)
				}
				if _, starts := n.(*ast.GoStmt); starts {
					t.Errorf("%s starts a goroutine", file)
				}
				return true
			})
		}
	}
}

// isUnder reports whether a package has a path, or one below it.
func isUnder(dep, path string) bool {
	return dep == path || strings.HasPrefix(dep, strings.TrimSuffix(path, "/")+"/")
}

func depsOf(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", pkg).Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", pkg, err)
	}
	return strings.Fields(string(out))
}

func TestEveryPackageHasAComment(t *testing.T) {
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
