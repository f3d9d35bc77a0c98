package journey

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/tables"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/logbuffer"
)

var plane *controlplane.Plane

func TestMain(m *testing.M) {
	p, err := controlplane.Start(context.Background(), controlplane.Options{Controllers: true, Log: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	plane = p
	code := m.Run()
	_ = p.Stop()
	os.Exit(code)
}

// stack is a server, and an agent of the test's control plane.
type stack struct {
	t   *testing.T
	srv *server.Server
	log *logbuffer.Buffer
	dir string

	spans   *tracetest.InMemoryExporter
	tracing *sdktrace.TracerProvider // of both programs

	agent     *agent.Agent
	stopAgent func() // stops the agent and waits until it has ended
}

// newLogger returns the logger of a program, which all lines name.
func (h *stack) newLogger(program string) *slog.Logger {
	h.t.Helper()
	log, err := logging.New(logging.Config{Level: "debug", Fields: map[string]string{"program": program}}, h.log, h.log)
	if err != nil {
		h.t.Fatal(err)
	}
	return log
}

// start starts a server and an agent, which run until the test ends.
func start(t *testing.T, account agent.Account, rules redact.Config) *stack {
	t.Helper()
	return startWithDialOptions(t, account, rules)
}

// startWithDialOptions is like start, with options for the agent's connection.
func startWithDialOptions(t *testing.T, account agent.Account, rules redact.Config, options ...grpc.DialOption) *stack {
	t.Helper()
	h := startServer(t, assignment.BalanceConfig{})
	h.startAgent(account, rules, options...)
	t.Cleanup(func() { h.stopAgent() })
	return h
}

// startServer starts a server without an agent.
func startServer(t *testing.T, balance assignment.BalanceConfig) *stack {
	t.Helper()
	h := &stack{t: t, log: &logbuffer.Buffer{}, dir: t.TempDir(), spans: tracetest.NewInMemoryExporter()}
	h.tracing = sdktrace.NewTracerProvider(sdktrace.WithSyncer(h.spans))
	log := h.newLogger("server")
	srv, err := server.Listen(server.Config{
		ID: "s1", Version: "test", REST: "127.0.0.1:0", GRPC: "127.0.0.1:0",
		Store:       sqldb.Config{URL: "sqlite:" + filepath.Join(h.dir, "v.db"), Log: log},
		AgentServer: agentserver.Config{Projections: tables.Projections()},
		Balance:     balance,
		Tracing:     h.tracing,
	}, log)
	if err != nil {
		t.Fatal(err)
	}
	h.srv = srv
	stopServer := runInBackground(t, srv.Run)
	t.Cleanup(func() {
		stopServer()
		if t.Failed() {
			t.Log(h.log.String())
		}
	})
	return h
}

// startAgent starts an agent with one account of the control plane.
func (h *stack) startAgent(account agent.Account, rules redact.Config, options ...grpc.DialOption) {
	account.Access.KubeconfigFile = plane.Kubeconfig()
	h.agent = agent.New(agent.Config{
		Uplink:   uplink.Config{Target: h.srv.GRPC().String(), Creds: insecure.NewCredentials(), Agent: "a1", DialOptions: options},
		Accounts: []agent.Account{account}, Redact: rules, Tracing: h.tracing,
	}, h.newLogger("agent"))
	h.stopAgent = runInBackground(h.t, h.agent.Run)
}

// runInBackground runs a function until stop is called.
func runInBackground(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	group.Go(func() error { return run(ctx) })
	return func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// get decodes a response of the server, and reports whether its status was 200.
func (h *stack) get(path string, into any) bool {
	h.t.Helper()
	resp, err := http.Get("http://" + h.srv.REST().String() + path)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK && into != nil {
		if err := json.Unmarshal(body, into); err != nil {
			h.t.Fatalf("GET %s: %v in %s", path, err, body)
		}
	}
	return resp.StatusCode == http.StatusOK
}

// await polls until done returns true, for at most a minute.
func (h *stack) await(what string, done func() bool) {
	h.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline.C:
			h.t.Fatalf("timeout waiting for %s", what)
		case <-tick.C:
		}
	}
}

func (h *stack) awaitLive(feeds int) {
	h.t.Helper()
	h.await(fmt.Sprintf("%d live feeds", feeds), func() bool {
		var list struct {
			Items []struct{ State string }
		}
		if !h.get("/vedette/v1/feeds", &list) {
			return false
		}
		live := 0
		for _, f := range list.Items {
			if f.State == string(vedette.FeedLive) {
				live++
			}
		}
		return live == feeds
	})
}

// TestChangesReachReaders follows objects from a cluster's controllers to the API: their creation,
// a change, and their deletion.
func TestChangesReachReaders(t *testing.T) {
	workloads := controlplane.Workloads{Namespace: "flow", Deployments: 2, Replicas: 2}
	if err := plane.CreateWorkloads(t.Context(), workloads); err != nil {
		t.Fatal(err)
	}
	h := start(t, agent.Account{Name: "one"}, redact.Config{})
	h.awaitLive(len(vedette.DefaultKinds))
	pods := func() int {
		var list struct{ Total int }
		h.get("/vedette/v1/objects?account=one&kind=pods&namespace=flow&selector="+url.QueryEscape("app=app-0"), &list)
		return list.Total
	}
	h.await("the Deployment's two pods", func() bool { return pods() == 2 })
	path := "/apis/apps/v1/namespaces/flow/deployments/app-0"
	if err := plane.Patch(t.Context(), path, map[string]any{"spec": map[string]any{"replicas": 4}}); err != nil {
		t.Fatal(err)
	}
	h.await("four pods after scaling", func() bool { return pods() == 4 })
	if err := plane.Delete(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	h.await("no pods after the Deployment was deleted", func() bool { return pods() == 0 })
}

// TestSecretsAreNotStoredOrLogged looks for secret data everywhere it could have leaked to: rows,
// responses and log lines. The account caches Secrets explicitly, which users should not do.
func TestSecretsAreNotStoredOrLogged(t *testing.T) {
	const canary = "c4n4ry-7d1f"
	lastApplied := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"default"},"stringData":{"password":"%s"}}`, canary)
	objects := []struct {
		path string
		body any
	}{
		{"/api/v1/namespaces/default/secrets", map[string]any{"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]any{"name": "s", "annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": lastApplied, "moniker.spinnaker.io/application": "shop-of-the-secret", "example.com/note": canary}},
			"stringData": map[string]any{"password": canary}}},
		{"/api/v1/namespaces/default/configmaps", map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "c"}, "data": map[string]any{"token": canary, "colour": "green"}}},
		{"/apis/apps/v1/namespaces/default/deployments", map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "d", "annotations": map[string]any{"example.com/key": canary}},
			"spec": map[string]any{"replicas": 0, "selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
				"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
					"spec": map[string]any{"containers": []any{map[string]any{"name": "m", "image": "i",
						"env": []any{map[string]any{"name": "DB_PASSWORD", "value": canary}}}}}}}}},
	}
	for _, o := range objects {
		if err := plane.Create(t.Context(), o.path, o.body); err != nil {
			t.Fatal(err)
		}
	}
	h := start(t, agent.Account{Name: "one", Selection: watch.Selection{Kinds: []string{"Secret", "ConfigMap", "Deployment", "ReplicaSet"}}},
		redact.Config{Annotations: []string{"example.com/*"}, ConfigMapKeys: []string{"tok*"}, Environment: []string{"*PASSWORD*"}})
	h.awaitLive(4)
	for _, kind := range []string{"secrets", "configmaps", "deployments", "replicasets"} {
		var answer json.RawMessage
		if !h.get("/vedette/v1/objects?kind="+kind+"&include=body", &answer) {
			t.Fatalf("%s cannot be read", kind)
		}
		if strings.Contains(string(answer), canary) {
			t.Errorf("the response for %s contains the canary:\n%s", kind, answer)
		}
	}
	var secret json.RawMessage
	if !h.get("/vedette/v1/objects/one/secrets/default/s", &secret) || !strings.Contains(string(secret), "shop-of-the-secret") {
		t.Errorf("got no Secret, or no metadata of it: %s", secret)
	}
	if strings.Contains(h.log.String(), canary) {
		t.Error("the log contains the canary")
	}
	files, err := filepath.Glob(filepath.Join(h.dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no database files", err)
	}
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(canary)) {
			t.Errorf("%s contains the canary", filepath.Base(file))
		}
	}
}

// TestDataIsStaleWithoutAgent checks that data is reported as stale when its agent is gone, and
// that it can still be read.
func TestDataIsStaleWithoutAgent(t *testing.T) {
	h := start(t, agent.Account{Name: "one", Selection: watch.Selection{Kinds: []string{"Namespace"}}}, redact.Config{})
	h.awaitLive(1)
	stale := func() bool {
		var list struct {
			Items []struct{ Stale bool }
		}
		return h.get("/vedette/v1/feeds", &list) && len(list.Items) == 1 && list.Items[0].Stale
	}
	h.await("the feed to be fresh", func() bool { return !stale() })
	h.stopAgent()
	h.await("the feed to be stale", stale)
	var list struct{ Total int }
	if !h.get("/vedette/v1/objects?kind=namespaces", &list) || list.Total == 0 {
		t.Error("stale data cannot be read")
	}
}

// TestNewRedactionRulesApplyToStoredData restarts an agent with a new redaction rule. The server
// must remove what the rule redacts, even though the cluster has not changed.
func TestNewRedactionRulesApplyToStoredData(t *testing.T) {
	const path, password = "/apis/apps/v1/namespaces/default/deployments", "hunter2"
	err := plane.Create(t.Context(), path, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "rules"},
		"spec": map[string]any{"replicas": 0, "selector": map[string]any{"matchLabels": map[string]any{"a": "rules"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "rules"}},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "m", "image": "i",
					"env": []any{map[string]any{"name": "API_TOKEN", "value": password}}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	account := agent.Account{Name: "one", Selection: watch.Selection{Kinds: []string{"Deployment"}}}
	h := start(t, account, redact.Config{})
	stored := func() string {
		var object json.RawMessage
		h.get("/vedette/v1/objects/one/deployments/default/rules", &object)
		return string(object)
	}
	h.await("the value before the rule", func() bool { return strings.Contains(stored(), password) })
	h.stopAgent()
	h.startAgent(account, redact.Config{Environment: []string{"*TOKEN*"}})
	h.await("the value to be removed", func() bool {
		now := stored()
		return strings.Contains(now, "API_TOKEN") && !strings.Contains(now, password)
	})
}
