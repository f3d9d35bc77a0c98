package beside

import (
	"context"
	_ "embed" // for clouddriver.yml
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/test/beside/standin"
	"github.com/vedette-io/vedette/test/compatibility"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/spinnaker/service"
)

var clouddriverArguments = flag.String("clouddriver", "", "Java argument file of a Clouddriver, which replaces the stand-in")

// realClouddriver is a Clouddriver with its Redis.
type realClouddriver struct {
	*service.Service
	t testing.TB
}

// startClouddriver starts a Clouddriver that has the clusters as its accounts, and waits until it has cached all.
func startClouddriver(t testing.TB, clusters map[string]*cluster) *realClouddriver {
	t.Helper()
	dir := keptDir(t)
	binaries, err := controlplane.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	front50 := httptest.NewServer(compatibility.Front50Handler())
	t.Cleanup(front50.Close)
	redis, redisPort, err := service.StartRedis(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	config := service.Config{Name: "clouddriver", Arguments: *clouddriverArguments, Dir: dir, Redis: redisPort, Front50: front50.URL, Kubectl: binaries["kubectl"]}
	for name, c := range clusters {
		config.Accounts = append(config.Accounts, service.Account{Name: name, Environment: standin.Name, Kubeconfig: c.Kubeconfig()})
	}
	began := time.Now()
	c := &realClouddriver{t: t}
	if c.Service, err = service.Start(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	if err := c.AwaitHealth(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("Clouddriver is healthy after %.0fs", time.Since(began).Seconds())
	c.awaitCached(clusters)
	t.Logf("Clouddriver has cached everything after %.0fs", time.Since(began).Seconds())
	return c
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
				a := send(ctx, http.MethodGet, c.URL()+q.path, nil)
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

// Freeze implements clouddriver. The kernel still accepts connections.
func (c *realClouddriver) Freeze() { c.check(c.Pause()) }

// Thaw implements clouddriver.
func (c *realClouddriver) Thaw() { c.check(c.Resume()) }

func (c *realClouddriver) check(err error) {
	if err != nil {
		c.t.Error(err)
	}
}

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
