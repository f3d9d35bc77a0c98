//go:build unix

package prometheus_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/programs"
	"github.com/vedette-io/vedette/test/prometheus"
)

// dataTimeout is how long all panels may take until they have data. It takes some 20 seconds: rates
// need two scrapes with traffic in between, and the feeds in the database are counted every 30 s.
const dataTimeout = 3 * time.Minute

// TestPanelsHaveData runs an agent, a server and a Prometheus that scrapes both, and checks that
// every query of every panel returns numbers while there is traffic. Another server with another agent shares the database.
func TestPanelsHaveData(t *testing.T) {
	b := binaries(t)
	w := startPrograms(t)
	p := prometheus.Start(t, b,
		prometheus.Target{Job: "vedette-agent", Address: w.agentMetrics, Path: "/prometheus_metrics", Namespace: "vedette", Pod: "agent-0"},
		prometheus.Target{Job: "vedette-server", Address: w.serverMetrics, Path: "/metrics", Namespace: "vedette", Pod: "server-0"})
	pending := allQueries(t)
	total := len(pending)
	ctx, cancel := context.WithTimeout(t.Context(), dataTimeout)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for round := 0; len(pending) > 0; round++ {
		w.sendTraffic(round)
		pending = slices.DeleteFunc(pending, func(q panelQuery) bool {
			values, err := p.Query(ctx, q.query)
			return err == nil && len(values) > 0
		})
		select {
		case <-tick.C:
		case <-ctx.Done():
			for _, q := range pending {
				_, err := p.Query(t.Context(), q.query)
				t.Errorf("%s, panel %s: no data for %s (%v)", q.dashboard, q.panel, q.query, err)
			}
			return
		}
	}
	t.Logf("all %d queries have data", total)
	checkScrapes(t, p)
}

// checkScrapes checks that both programs were scraped, with a bounded number of series.
func checkScrapes(t *testing.T, p *prometheus.Server) {
	up, err := p.Query(t.Context(), "up == 1")
	if err != nil || len(up) != 2 {
		t.Fatalf("got %v, %v, want two targets", up, err)
	}
	series, err := p.Query(t.Context(), "max_over_time(scrape_samples_scraped[10m])")
	if err != nil {
		t.Fatal(err)
	}
	for target, n := range series {
		t.Logf("%s: %v samples", target, n)
		if n > 5000 {
			t.Errorf("%s has %v samples in one scrape, want at most 5000", target, n)
		}
	}
}

type panelQuery struct{ dashboard, panel, query string }

func allQueries(t *testing.T) []panelQuery {
	t.Helper()
	var all []panelQuery
	for file, pod := range dashboards {
		panels, err := prometheus.ReadDashboard(file, pod)
		if err != nil {
			t.Fatal(err)
		}
		for _, panel := range panels {
			for _, query := range panel.Queries {
				all = append(all, panelQuery{panel.Dashboard, panel.Title, query})
			}
		}
	}
	return all
}

// installation is a running agent of a control plane, and its server.
type installation struct {
	t                                 *testing.T
	plane                             *controlplane.Plane
	rest, agentMetrics, serverMetrics string
}

func startPrograms(t *testing.T) *installation {
	t.Helper()
	w := &installation{t: t, plane: controlplane.New(t, controlplane.Options{})}
	if err := w.plane.Create(t.Context(), "/apis/apps/v1/namespaces/default/deployments", deployment); err != nil {
		t.Fatal(err)
	}
	port := func() string {
		n, err := ports.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(n)
	}
	rest, grpc, agentMetrics, serverMetrics := port(), port(), port(), port()
	w.rest, w.agentMetrics, w.serverMetrics = "http://127.0.0.1:"+rest, "127.0.0.1:"+agentMetrics, "127.0.0.1:"+serverMetrics
	bin := buildPrograms(t)
	upstream := httptest.NewServer(http.HandlerFunc(serveUpstream))
	t.Cleanup(upstream.Close)
	database, shard := databases.PostgreSQL(t), databases.PostgreSQL(t)
	w.run(filepath.Join(bin, "vedette-server"), fmt.Sprintf(`
dataDir: %q
server: {id: server-0, port: %s, peers: {address: 127.0.0.1, port: %s}}
grpc.server.port: %s
prometheus: {enabled: true, port: %s}
upstream.baseUrl: %s
sql: {url: %q, shards: [{name: b, url: %q}]}
kubesvc.cluster: database
`, t.TempDir(), rest, port(), grpc, serverMetrics, upstream.URL, database, shard))
	otherGRPC := port()
	w.run(filepath.Join(bin, "vedette-server"), fmt.Sprintf(`
dataDir: %q
server: {id: server-1, port: %s, peers: {address: 127.0.0.1, port: %s}}
grpc.server.port: %s
sql: {url: %q, shards: [{name: b, url: %q}]}
kubesvc.cluster: database
`, t.TempDir(), port(), port(), otherGRPC, database, shard))
	w.run(filepath.Join(bin, "vedette-agent"), fmt.Sprintf(`
agentId: agent-of-server-1
clouddriver: {grpc: "127.0.0.1:%s", insecure: true}
server: {host: 127.0.0.1, port: %s}
kubernetes.accounts: [{name: other, kubeconfigFile: %q}]
`, otherGRPC, port(), w.plane.Kubeconfig()))
	w.run(filepath.Join(bin, "vedette-agent"), fmt.Sprintf(`
clouddriver: {grpc: "127.0.0.1:%s", insecure: true}
server: {host: 127.0.0.1, port: %s}
prometheus: {enabled: true, host: 127.0.0.1, port: %s}
kubernetes.accounts: [{name: prod, kubeconfigFile: %q}]
`, grpc, port(), agentMetrics, w.plane.Kubeconfig()))
	return w
}

// serveUpstream answers as a Clouddriver of which some requests fail.
func serveUpstream(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/subnets") {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	_, _ = io.WriteString(w, "[]")
}

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"web"}},
	"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"main","image":"web:1"}]}}}}`

func buildPrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := programs.Build(t.Context(), dir, "vedette-agent", "vedette-server"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// run runs a program with a configuration until the test ends. It prints the program's log if the
// test fails.
func (w *installation) run(program, config string) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "config.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "--config", file)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if w.t.Failed() {
			w.t.Logf("%s:\n%s", filepath.Base(program), log.String())
		}
	})
}

// sendTraffic makes each metric change: an operation, a task, changes of objects, reads of views,
// and requests to the Clouddriver behind the server. Its requests may fail while the programs start.
func (w *installation) sendTraffic(round int) {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"round":"%d"}}}`, round)
	if err := w.plane.Patch(w.t.Context(), "/apis/apps/v1/namespaces/default/deployments/web", patch); err != nil {
		w.t.Error(err)
	}
	w.send(http.MethodPost, "/vedette/v1/operations", fmt.Sprintf(`{"account":"prod","verb":"scale","kind":"deployment","namespace":"default","name":"web","replicas":%d}`, round%5))
	w.send(http.MethodPost, "/kubernetes/ops", fmt.Sprintf(`[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"default","replicas":%d}}]`, round%7))
	w.send(http.MethodPost, "/vedette/v1/operations", `{"account":"other","verb":"get","kind":"deployment","namespace":"default","name":"web"}`)
	for _, path := range []string{"/applications/web/serverGroups", "/applications/web/serverGroups", "/credentials", "/vedette/v1/accounts", "/no/such/path/at/all",
		"/networks/aws", "/subnets/aws"} {
		w.send(http.MethodGet, path, "")
	}
}

func (w *installation) send(method, path, body string) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, w.rest+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return // the server is starting
	}
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
}
