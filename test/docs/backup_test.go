package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/test/process"
)

var backups = &page{path: "../../docs/backup.md"}

// databaseName is the name of the database where examples of the page have one.
var databaseName = regexp.MustCompile(`([ =])vedette([ ;'\n])`)

// backedUp is a database that a test backs up and restores by the page's commands.
type backedUp struct {
	name  string                        // in the names of the page's examples
	start func(t *testing.T) *url.URL   // returns the URL of a new database; nil for SQLite
	login func(w *scenario, u *url.URL) // lets the commands find the database
}

// TestBackupAndRestore makes the page's backup while agents report changes, restores it later, and checks that the store equals the
// cluster afterwards, though agents have nothing but what the server tells them.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	for _, db := range []backedUp{
		{name: "SQLite"},
		{name: "PostgreSQL", start: func(t *testing.T) *url.URL { return parse(t, databases.PostgreSQL(t)) }, login: loginPostgreSQL},
		{name: "MariaDB or MySQL", start: func(t *testing.T) *url.URL { return parse(t, databases.MariaDB(t)) }, login: loginMariaDB},
	} {
		t.Run(db.name, func(t *testing.T) {
			t.Parallel()
			if program := map[string]string{"PostgreSQL": "pg_dump", "MariaDB or MySQL": "mariadb-dump"}[db.name]; program != "" {
				needs(t, program, "scripts/test-databases.sh")
			}
			db.test(t)
		})
	}
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func loginPostgreSQL(w *scenario, u *url.URL) {
	password, _ := u.User.Password()
	w.env = append(w.env, "PGHOST="+u.Hostname(), "PGPORT="+u.Port(), "PGUSER="+u.User.Username(), "PGPASSWORD="+password)
}

func loginMariaDB(w *scenario, u *url.URL) {
	password, _ := u.User.Password()
	w.write("/.my.cnf", fmt.Sprintf("[client]\nprotocol=tcp\nhost=%s\nport=%s\nuser=%s\npassword=%s\n", u.Hostname(), u.Port(), u.User.Username(), password))
}

func (db backedUp) test(t *testing.T) {
	namespace := "backup-" + strings.ToLower(strings.Fields(db.name)[0])
	o := options{accounts: strings.ReplaceAll(`  - name: prod-eu
    kubeconfigFile: KUBECONFIG
    kinds: [ConfigMap, Deployment]
    namespaces: [NAMESPACE]
  - name: prod-us
    kubeconfigFile: KUBECONFIG
    kinds: [ConfigMap]
    namespaces: [NAMESPACE]
`, "NAMESPACE", namespace)}
	var database *url.URL
	if db.start != nil {
		database = db.start(t)
		o.server = fmt.Sprintf("sql.url: %q\n", database)
	}
	w := newScenario(t, o)
	if database != nil {
		db.login(w, database)
		w.database = strings.TrimPrefix(database.Path, "/")
		w.owner = database.User.Username()
	}
	ctx := t.Context()
	w.fillNamespace(namespace)
	w.start()
	w.awaitEqual(namespace, "prod-eu", "prod-us")

	changes, stop := make(chan error), make(chan struct{})
	go func() { changes <- change(w, namespace, stop) }()
	w.runScript(backups, "backup of "+db.name)
	close(stop)
	if err := <-changes; err != nil {
		t.Fatal(err)
	}
	if db.start == nil {
		if got := w.run("stat -c %a /var/backups/vedette/vedette.db"); got != "600\n" {
			t.Errorf("the backup has the mode %s, want 600", got)
		}
	}

	scale := "vedette scale deployment web --replicas %d -n " + namespace + " --account prod-eu"
	if out := w.run(fmt.Sprintf(scale, 5)); !strings.Contains(out, "scaled") {
		t.Fatal(out)
	}
	for i := range 10 {
		if err := w.plane.Delete(ctx, fmt.Sprintf("/api/v1/namespaces/%s/configmaps/before-%d", namespace, i)); err != nil {
			t.Fatal(err)
		}
		if err := createConfigMap(ctx, w.plane, namespace, fmt.Sprintf("after-%d", i), "value"); err != nil {
			t.Fatal(err)
		}
	}
	w.awaitEqual(namespace, "prod-eu", "prod-us")
	// The cluster forgets what the backup knows, so that the agent must compare. Another test may have been faster.
	if err := w.plane.Compact(ctx); err != nil && !strings.Contains(err.Error(), "required revision has been compacted") {
		t.Fatal(err)
	}
	w.runScript(backups, "restore of "+db.name)
	w.awaitOutput("vedette accounts", "Ready")
	if history := w.run("vedette ops"); strings.Contains(history, "scale") {
		t.Errorf("the history has an operation since the backup, so nothing was restored:\n%s", history)
	}
	w.awaitEqual(namespace, "prod-eu", "prod-us")
	if out := w.run(fmt.Sprintf(scale, 6)); !strings.Contains(out, "scaled") {
		t.Errorf("got %s, want an operation that works after the restore", out)
	}
}

// fillNamespace creates a namespace with the Deployment web and the ConfigMaps before-0 to before-19.
func (w *scenario) fillNamespace(namespace string) {
	w.t.Helper()
	ctx := w.t.Context()
	if err := createNamespace(ctx, w.plane, namespace); err != nil {
		w.t.Fatal(err)
	}
	if err := createDeployment(ctx, w.plane, namespace, "web"); err != nil {
		w.t.Fatal(err)
	}
	for i := range 20 {
		if err := createConfigMap(ctx, w.plane, namespace, fmt.Sprintf("before-%d", i), "value"); err != nil {
			w.t.Fatal(err)
		}
	}
}

// runScript runs an example of a page. systemctl acts on the programs of the test.
func (w *scenario) runScript(p *page, name string) {
	w.t.Helper()
	script := p.example(w.t, name)
	for range 2 { // matches share the space between them
		script = databaseName.ReplaceAllString(script, "${1}"+w.database+"$2")
	}
	script = strings.ReplaceAll(script, "--owner="+w.database, "--owner="+w.owner)
	programs := map[string]*process.Program{"vedette-server": w.server, "vedette-agent": w.agent}
	var lines strings.Builder // since systemctl
	for line := range strings.Lines(script) {
		action, isSystemctl := strings.CutPrefix(strings.TrimSpace(line), "systemctl ")
		if !isSystemctl {
			lines.WriteString(line)
			continue
		}
		w.runLines(name, lines.String())
		lines.Reset()
		verb, service, _ := strings.Cut(action, " ")
		switch verb {
		case "stop":
			programs[service].Stop()
		case "start":
			programs[service].Start()
		default:
			w.t.Fatalf("%s: the test cannot do %q", name, line)
		}
	}
	w.runLines(name, lines.String())
}

func (w *scenario) runLines(name, lines string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "bash", "-euc", w.reveal(lines))
	cmd.Env = append(os.Environ(), append(w.env, "HOME="+w.root, "PATH="+binDir+":"+os.Getenv("PATH"))...)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// change changes an object until stop is closed.
func change(w *scenario, namespace string, stop <-chan struct{}) error {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		default:
		}
		path := fmt.Sprintf("/api/v1/namespaces/%s/configmaps/before-%d", namespace, 10+i%10)
		if err := w.plane.Patch(w.t.Context(), path, controlplane.Object{"data": controlplane.Object{"key": fmt.Sprint(i)}}); err != nil {
			return err
		}
	}
}

// awaitEqual waits until the store has the same versions of the same ConfigMaps as the cluster.
func (w *scenario) awaitEqual(namespace string, accounts ...string) {
	w.t.Helper()
	var want map[string]string
	for _, account := range accounts {
		var got map[string]string
		w.eventually(func() bool {
			out, err := w.plane.Kubectl(w.t.Context(), "get", "configmaps", "-n", namespace, "-o", "json")
			if err != nil {
				w.t.Fatal(err)
			}
			want = versions(string(out))
			got = versions(w.run("vedette get configmaps -n " + namespace + " -o json --account " + account))
			return len(want) > 0 && maps.Equal(got, want)
		}, func() string {
			return fmt.Sprintf("%s: got %d objects, want %d: %v and %v", account, len(got), len(want), slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		})
	}
}

// versions returns uid and resourceVersion of objects by name; nothing if the text is not a list.
func versions(text string) map[string]string {
	var list struct {
		Items []struct {
			Metadata struct{ Name, UID, ResourceVersion string }
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil
	}
	found := map[string]string{}
	for _, item := range list.Items {
		found[item.Metadata.Name] = item.Metadata.UID + " " + item.Metadata.ResourceVersion
	}
	return found
}

// TestDatabaseIsLost starts with an empty database as the page says, and checks that everything but the history comes back by itself.
func TestDatabaseIsLost(t *testing.T) {
	t.Parallel()
	const namespace = "database-lost"
	w := newScenario(t, options{accounts: strings.ReplaceAll(defaultAccounts, "[shop]", "["+namespace+"]")})
	w.fillNamespace(namespace)
	w.start()
	w.awaitEqual(namespace, "prod-eu")
	const annotate = "vedette annotate deployment web turn=%d -n " + namespace + " --account prod-eu --overwrite"
	if out := w.run(fmt.Sprintf(annotate, 1)); !strings.Contains(out, "annotated") {
		t.Fatal(out)
	}
	if history := w.run("vedette ops"); !strings.Contains(history, "deployment "+namespace+"/web") {
		t.Fatalf("the history lacks the operation:\n%s", history)
	}
	w.runScript(&page{path: "../../docs/disaster.md"}, "an empty database")
	w.awaitOutput("vedette accounts", "Ready")
	w.awaitEqual(namespace, "prod-eu")
	if history := w.run("vedette ops"); strings.Contains(history, namespace) {
		t.Errorf("the history has an operation of the lost database:\n%s", history)
	}
	if out := w.run(fmt.Sprintf(annotate, 2)); !strings.Contains(out, "annotated") {
		t.Errorf("got %s, want an operation that works", out)
	}
}

// TestDowngradeIsRefusedAsDocumented shows what an older server says about the tables of a newer one.
func TestDowngradeIsRefusedAsDocumented(t *testing.T) {
	t.Parallel()
	needs(t, "sqlite3", "scripts/test-databases.sh")
	w := newScenario(t, options{})
	w.server.Start()
	w.awaitOutput("vedette accounts", "No resources")
	w.server.Stop()
	w.run("sqlite3 /var/lib/vedette/vedette.db \"INSERT INTO schema_version (version_id, is_applied) SELECT MAX(version_id) + 1, 1 FROM schema_version\"")
	s := withoutKubernetes.section(t, "Upgrade and downgrade")
	s.show(w.once("vedette-server --config /etc/vedette/server/vedette-server.yml 2>&1 | tail -1"))
}
