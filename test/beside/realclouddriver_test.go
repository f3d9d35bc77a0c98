package beside

import (
	"bytes"
	"context"
	_ "embed" // for clouddriver.yml
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/test/beside/standin"
	"github.com/vedette-io/vedette/test/compatibility"
	"github.com/vedette-io/vedette/test/controlplane"
)

var clouddriverArguments = flag.String("clouddriver", "", "Java argument file of a Clouddriver, which replaces the stand-in")

//go:embed clouddriver.yml
var clouddriverConfig string

// clouddriverStartTimeout is how long Clouddriver may take until it is healthy. On two busy cores it takes half a minute.
const clouddriverStartTimeout = 4 * time.Minute

// realClouddriver is a Clouddriver with its Redis.
type realClouddriver struct {
	t    *testing.T
	url  string
	java *process
}

// startClouddriver starts a Clouddriver that has the clusters as its accounts, and waits until it has cached all.
func startClouddriver(t *testing.T, clusters map[string]*cluster) *realClouddriver {
	t.Helper()
	dir := keptDir(t)
	port, redisPort := freePort(t), freePort(t)
	startRedis(t, dir, redisPort)
	binaries, err := controlplane.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	front50 := httptest.NewServer(compatibility.Front50Handler())
	t.Cleanup(front50.Close)
	type account struct{ Name, Kubeconfig string }
	values := struct {
		Port, Redis                   int
		Front50, Kubectl, Environment string
		Accounts                      []account
	}{port, redisPort, front50.URL, binaries["kubectl"], standin.Name, nil}
	for name, c := range clusters {
		values.Accounts = append(values.Accounts, account{name, c.Kubeconfig()})
	}
	var config bytes.Buffer
	if err := template.Must(template.New("clouddriver.yml").Parse(clouddriverConfig)).Execute(&config, values); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "clouddriver.yml")
	if err := os.WriteFile(file, config.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &realClouddriver{t: t, url: fmt.Sprintf("http://127.0.0.1:%d", port)}
	c.java = &process{t: t, name: "Clouddriver", path: lookPath(t, "java"), dir: dir, log: filepath.Join(dir, "clouddriver.log"),
		args: []string{"-Xmx1000m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.io.tmpdir=" + dir, "--add-opens=java.base/java.util=ALL-UNNAMED",
			"--add-exports=java.base/sun.security.x509=ALL-UNNAMED", "-Dspring.config.location=file:" + file, "@" + *clouddriverArguments},
		env: []string{"KUBECACHEDIR=" + filepath.Join(dir, "kube-cache"), "PATH=" + filepath.Dir(binaries["kubectl"]) + ":" + os.Getenv("PATH")}}
	began := time.Now()
	c.java.start()
	await(t, clouddriverStartTimeout, "Clouddriver is healthy", c.checkHealth)
	t.Logf("Clouddriver is healthy after %.0fs", time.Since(began).Seconds())
	c.awaitCached(clusters)
	t.Logf("Clouddriver has cached everything after %.0fs", time.Since(began).Seconds())
	return c
}

// startRedis starts a Redis that keeps nothing.
func startRedis(t *testing.T, dir string, port int) {
	t.Helper()
	redis := &process{t: t, name: "Redis", path: lookPath(t, "redis-server"), log: filepath.Join(dir, "redis.log"),
		args: []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir}}
	redis.start()
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("find %s, which a Clouddriver needs: %v: install it, and add its directory to PATH", name, err)
	}
	return path
}

func (c *realClouddriver) checkHealth(ctx context.Context) error {
	if c.java.hasEnded() {
		c.t.Fatalf("Clouddriver has ended:\n%s", c.java.tail(20))
	}
	a := send(ctx, http.MethodGet, c.url+"/health", nil)
	var health struct{ Status string }
	if a.err != nil || json.Unmarshal(a.body, &health) != nil || health.Status != "UP" {
		return errors.New(a.String())
	}
	return nil
}

// awaitCached waits until Clouddriver answers as readers expect. It looks at the clusters every 30 seconds.
func (c *realClouddriver) awaitCached(clusters map[string]*cluster) {
	c.t.Helper()
	s := subjects{accounts: []string{east, west}, applications: inventoryOf(clusters), tasks: func(int) (string, bool) { return "", false }}
	for name, next := range s.orcaRequests() {
		for n := range 2 * applicationCount {
			q := next(n)
			if q.path == "" {
				continue
			}
			await(c.t, 3*time.Minute, "Clouddriver has cached "+name, func(ctx context.Context) error {
				a := send(ctx, http.MethodGet, c.url+q.path, nil)
				if a.err != nil || a.status != http.StatusOK {
					return fmt.Errorf("GET %s: %v", q.path, a)
				}
				if _, problems := q.check(a.body); len(problems) > 0 {
					return fmt.Errorf("GET %s: %v: %v", q.path, problems, a)
				}
				return nil
			})
		}
	}
}

// URL implements clouddriver.
func (c *realClouddriver) URL() string { return c.url }

// Freeze implements clouddriver. The kernel still accepts connections.
func (c *realClouddriver) Freeze() { c.java.signal(syscall.SIGSTOP) }

// Thaw implements clouddriver.
func (c *realClouddriver) Thaw() { c.java.signal(syscall.SIGCONT) }

// addRuns implements clouddriver. What Clouddriver runs is in the clusters.
func (c *realClouddriver) addRuns(context.Context, map[string]map[string]int) error { return nil }

// mayRunTwice implements clouddriver. With Redis, Clouddriver looks for a task with the clientRequestId before it creates one; two requests
// that both wait until it thaws find none. Its tasks have UUIDs, the server's have ULIDs.
func (c *realClouddriver) mayRunTwice(task string) bool { return strings.Count(task, "-") == 4 }

// knows implements clouddriver.
func (c *realClouddriver) knows(string) bool { return true }

// accounts implements clouddriver.
func (c *realClouddriver) accounts() []string { return []string{east, west} }

// hasLabels implements clouddriver.
func (c *realClouddriver) hasLabels() bool { return false }

// logVersions logs what was tested.
func logVersions(t *testing.T, in *installation, plane *cluster) {
	t.Helper()
	rest, err := client.New(in.url)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := rest.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var kubernetes struct{ GitVersion string }
	if err := plane.Get(t.Context(), "/version", &kubernetes); err != nil {
		t.Fatal(err)
	}
	upstreamVersion := "the stand-in"
	if *clouddriverArguments != "" {
		upstreamVersion = clouddriverVersion(t)
	}
	t.Logf("versions: Vedette %s, Kubernetes %s, upstream Clouddriver: %s", ours, kubernetes.GitVersion, upstreamVersion)
}

// clouddriverVersion returns the versions that the names of Clouddriver's own files tell.
func clouddriverVersion(t *testing.T) string {
	t.Helper()
	arguments, err := os.ReadFile(*clouddriverArguments)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, match := range regexp.MustCompile(`/((?:clouddriver-web|kork-core|spring-boot)-\d[^/:]*)\.jar`).FindAllStringSubmatch(string(arguments), -1) {
		found = append(found, match[1])
	}
	slices.Sort(found)
	return fmt.Sprint(slices.Compact(found))
}
