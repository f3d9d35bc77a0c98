package hostile

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// entryPoint names the attacks of one row of the tables in docs/security.md.
type entryPoint struct {
	row     string // "server" or "agent", and the first column
	attacks []string
}

// entryPoints has each row of the tables. An attack may be that of several rows.
var entryPoints = []entryPoint{
	{"server: REST: request line and headers", []string{"wide headers", "long URLs"}},
	{"server: REST: connections", []string{"idle connections"}},
	{"server: probes and metrics (management.server.port)", []string{"probes of the server"}},
	{"server: REST: query of /vedette/v1", []string{"wide queries"}},
	{"server: REST: bodies (POST /vedette/v1/operations, …/accept, …/release, ops, task, artifacts/fetch)", []string{"slow bodies", "large bodies"}},
	{"server: REST: operations under way, also after the caller has left", []string{"operations of callers who leave"}},
	{"server: REST: tasks (ops) under way, also after the caller has left", []string{"tasks of callers who leave"}},
	{"server: REST: searches", []string{"searches"}},
	{"server: REST: answers of objects, tables, views, tasks and searches", []string{"answers that are not read", "searches"}},
	{"server: REST: applications in memory", []string{"applications"}},
	{"server: REST: GET /vedette/v1/changes", []string{"streams with selectors"}},
	{"server: REST: changes between ingest and streams", []string{"streams that fall behind"}},
	{"server: REST: logs (/vedette/v1/logs, consoles, properties)", []string{"logs that are not read"}},
	{"server: REST: lines of the log", []string{"denied callers with long names"}},
	{"server: gRPC: headers and messages", []string{"large messages and headers", "thousands of streams", "silence after connecting, and half a hello"}},
	{"server: gRPC Caching: registrations and kinds", []string{"giant counts", "account errors, registrations and deregistrations"}},
	{"server: gRPC Caching: records", []string{"bombs in its own account", "bombs without an account", "records that never end", "large objects in its own accounts",
		"lies about its own objects", "feeds that begin anew", "verifications that never agree"}},
	{"server: gRPC Operations: outcomes and Answer", []string{"endless answers", "forged outcomes"}},
	{"server: gRPC Operations: answers that were handed to a caller of REST", []string{"lists that are not read"}},
	{"server: outcomes that tasks read, and answers of other services without an entry here", []string{"tasks with endless answers"}},
	{"server: YAML of manifests (POST /vedette/v1/operations)", []string{"manifests in YAML"}},
	{"server: gRPC: health and reflection", []string{"health and reflection"}},
	{"server: JSON bodies of REST (POST operations and tasks, PUT /artifacts/fetch)", []string{"bodies of small values"}},
	{"server: logs of containers: properties of Jobs", []string{"properties of Jobs"}},
	{"server: logs of containers: consoles", []string{"consoles"}},
	{"server: objects of clusters, for jobs, consoles, manifests and security groups", []string{"jobs of small values"}},
	{"server: packs of Git", []string{"packs of Git"}},
	{"server: clones of Git, on disk", []string{"large clones of Git"}},
	{"server: branches and tags of Git", []string{"endless branches of Git"}},
	{"server: archives of Git", []string{"attributes in many directories"}},
	{"server: indexes of Helm", []string{"indexes of Helm"}},
	{"server: files of HTTP, GitHub, GitLab, Bitbucket, buckets, and charts", []string{"endless files"}},
	{"server: the artifact store", []string{"the artifact store"}},
	{"server: Front50", []string{"Front50"}},
	{"server: metadata of GitHub's contents API", []string{"metadata of GitHub"}},
	{"server: an upstream", []string{"an upstream"}},
	{"server: Fiat", []string{"Fiat"}},
	{"server: configuration", []string{"configuration"}},
	{"server: documents of secret engines", []string{"documents of secret engines"}},

	{"agent: operations of the server: manifests, patches", []string{"manifests of small values"}},
	{"agent: objects in answers to operations", []string{"an endless object", "an object of empty maps"}},
	{"agent: lists in answers to operations", []string{"a list of 40,000 objects of 5 KB", "a list whose pages do not end", "a list of giant objects", "a list of one endless object", "one continue token"}},
	{"agent: lists that choose what is deleted", []string{"deletions by selector among 40,000 objects", "deletions among pages that do not end"}},
	{"agent: OpenAPI documents and lists of kinds for operations", []string{"an endless OpenAPI document"}},
	{"agent: discovery for operations", []string{"an endless list of kinds"}},
	{"agent: errors", []string{"an endless error"}},
	{"agent: logs", []string{"logs that are not read"}},
	{"agent: outcomes that the server does not acknowledge", []string{"a server that acknowledges nothing"}},
	{"agent: lists and watches of feeds", []string{"never-ending list", "never-ending object", "giant objects", "giant deletions", "a bomb", "deep deletions", "not UTF-8 in changes", "endless continue tokens"}},
	{"agent: discovery for feeds, and the identity of a cluster", []string{"kinds without end", "discovery that hangs", "namespaces without end", "an identity that hangs"}},
	{"agent: messages of the server", []string{"a server that acknowledges nothing", "endless indexes"}},
	{"agent: probes and metrics (server.port, management.server.port, prometheus.port)", []string{"probes of the agent"}},
	{"agent: configuration, kubeconfigs, files of credentials and answers of secret engines", []string{"configuration of the agent"}},
}

var tableRow = regexp.MustCompile(`(?m)^\| ([^|]+) \|`)

// rowsOfSecurity returns the rows of the tables in docs/security.md.
func rowsOfSecurity(t *testing.T) (rows []string) {
	t.Helper()
	raw, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(raw), "\n## What bytes from outside can become\n")
	text, _, found := strings.Cut(text, "\n## ")
	_, text, _ = strings.Cut(text, "\n### Server\n")
	server, agent, hasAgent := strings.Cut(text, "\n### Agent\n")
	if !found || !hasAgent {
		t.Fatal("docs/security.md has not the sections with the tables")
	}
	for side, table := range map[string]string{"server": server, "agent": agent} {
		for _, row := range tableRow.FindAllStringSubmatch(table, -1) {
			if name := strings.ReplaceAll(row[1], "`", ""); name != "entry point" && !strings.HasPrefix(name, "---") {
				rows = append(rows, side+": "+name)
			}
		}
	}
	return rows
}

// TestEveryEntryPointIsAttacked compares the tables in docs/security.md with the attacks.
func TestEveryEntryPointIsAttacked(t *testing.T) {
	rows := rowsOfSecurity(t)
	for _, row := range rows {
		if !slices.ContainsFunc(entryPoints, func(e entryPoint) bool { return e.row == row && len(e.attacks) > 0 }) {
			t.Errorf("nothing attacks %q: add an attack to entryPoints", row)
		}
	}
	for _, e := range entryPoints {
		if !slices.Contains(rows, e.row) {
			t.Errorf("docs/security.md does not say what becomes of the bytes of %q", e.row)
		}
	}
}
