package journey

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/tables"
	"github.com/vedette-io/vedette/test/logbuffer"
	"github.com/vedette-io/vedette/test/proxy"
)

// operationsEnv is a server, an agent of the control plane, and a proxy between the two.
type operationsEnv struct {
	*dispatch.Dispatcher
	t     *testing.T
	store *store.Store
	proxy *proxy.Proxy
	log   *slog.Logger
}

func newOperationsEnv(t *testing.T) *operationsEnv {
	t.Helper()
	w := newOperationsServer(t)
	account := agent.Account{Name: "one"}
	account.Access.KubeconfigFile = plane.Kubeconfig()
	t.Cleanup(runInBackground(t, agent.New(agent.Config{Uplink: w.uplink(), Accounts: []agent.Account{account}}, w.log).Run))
	w.awaitLive()
	return w
}

// newOperationsServer is like newOperationsEnv, without the agent.
func newOperationsServer(t *testing.T) *operationsEnv {
	t.Helper()
	logs := &logbuffer.Buffer{}
	w := &operationsEnv{t: t, log: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	var err error
	w.store, err = store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "v.db")})
	if err != nil {
		t.Fatal(err)
	}
	registry := assigner.New("s1", assignment.Config{}, w.store, accounts.New(accounts.Config{}, w.store, w.log), w.log)
	hub := ingest.NewHub()
	w.Dispatcher = dispatch.New(dispatch.Config{Server: "s1"}, registry, w.store, hub, w.log)
	agents := agentserver.New(agentserver.Config{ServerID: "s1", Version: "test", Projections: tables.Projections()}, ingest.New(ingest.Config{}, w.store, hub, w.log), registry, w.Dispatcher, w.log)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	rpc := grpc.NewServer(agentserver.ServerOptions()...)
	agents.Register(rpc)
	stopGRPC := runInBackground(t, func(context.Context) error { return rpc.Serve(listener) })
	stopDispatch := runInBackground(t, w.Run)
	stopAssigner := runInBackground(t, registry.Run)
	w.proxy = proxy.New(t, listener.Addr().String())
	t.Cleanup(func() {
		rpc.Stop()
		stopGRPC()
		stopDispatch()
		stopAssigner()
		registry.Close()
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(logs.String())
		}
	})
	return w
}

func (w *operationsEnv) uplink() uplink.Config {
	return uplink.Config{Target: w.proxy.Address(), Creds: insecure.NewCredentials(), Agent: "a1",
		Backoff: uplink.Backoff{BaseDelay: new(20 * time.Millisecond), MaxDelay: new(100 * time.Millisecond)}}
}

func (w *operationsEnv) awaitLive() {
	w.t.Helper()
	h := &stack{t: w.t}
	h.await("live feeds", func() bool {
		feeds, err := w.store.Feeds(w.t.Context(), "one")
		live := 0
		for _, f := range feeds {
			if f.State == vedette.FeedLive {
				live++
			}
		}
		return err == nil && live == len(vedette.DefaultKinds)
	})
}

func (w *operationsEnv) do(args vedette.Args) vedette.Outcome {
	return w.Execute(w.t.Context(), vedette.Operation{Account: "one", Args: args})
}

func (w *operationsEnv) mustDo(args vedette.Args) vedette.Outcome {
	w.t.Helper()
	out := w.do(args)
	if out.State != vedette.Done {
		w.t.Fatalf("%s: %s %d %s: %s", args.Verb(), out.State, out.Status, out.Reason, out.Message)
	}
	return out
}

// createNamespace creates a namespace of the test's own.
func (w *operationsEnv) createNamespace(name string) {
	w.t.Helper()
	w.mustDo(vedette.ApplyArgs{Manifest: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)})
}

func deployment(namespace, name string, replicas int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%[2]q,"namespace":%[1]q},"spec":{"replicas":%[3]d,
		"selector":{"matchLabels":{"app":%[2]q}},"template":{"metadata":{"labels":{"app":%[2]q}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`, namespace, name, replicas)
}

// TestOperationsReachTheCluster sends operations to the cluster, and reads what they wrote as soon
// as they are answered.
func TestOperationsReachTheCluster(t *testing.T) {
	w := newOperationsEnv(t)
	w.createNamespace("operations")
	web := vedette.Target{Kind: "deployment", Namespace: "operations", Name: "web"}
	key := vedette.Key{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Namespace: "operations", Name: "web"}
	wantStored := func(out vedette.Outcome) {
		t.Helper()
		row, err := w.store.Object(t.Context(), "one", key)
		if err != nil || out.CacheObject == nil || isOlder(row.ResourceVersion, out.CacheObject.ResourceVersion) {
			t.Errorf("read after write: got error %v", err)
		}
	}
	wantStored(w.mustDo(vedette.ApplyArgs{Manifest: deployment("operations", "web", 1)}))
	for n := range 10 {
		wantStored(w.mustDo(vedette.ScaleArgs{Target: web, Replicas: int64(n % 3)}))
	}
	if out := w.do(vedette.ApplyArgs{Manifest: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x","namespace":"operations"},"spec":{"replicas":-1}}`)}); out.Status != http.StatusUnprocessableEntity {
		t.Errorf("invalid operation: got %+v, want the cluster's error", out)
	}
	w.mustDo(vedette.DeleteArgs{Target: web, Propagation: "foreground"})
	if _, err := w.store.Object(t.Context(), "one", key); vedette.KindOf(err) != vedette.NotFound {
		t.Errorf("read after delete: got error %v, want not found", err)
	}
	if out := w.do(vedette.LogsArgs{Target: vedette.Target{Namespace: "operations", Name: "none"}}); out.Status != http.StatusNotFound {
		t.Errorf("log of a missing pod: got %+v", out)
	}
}

// TestOperationsMayExceedAMessage sends requests and responses that are larger than any message.
func TestOperationsMayExceedAMessage(t *testing.T) {
	w := newOperationsEnv(t)
	w.createNamespace("big")
	random := make([]byte, 450_000)
	rand.NewChaCha8([32]byte{1}).Read(random)
	text := fmt.Sprintf("%x", random) // 900 KB that do not compress well
	for i := range 14 {
		manifest, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": fmt.Sprint("big-", i), "namespace": "big"}, "data": map[string]any{"text": text}})
		if err != nil {
			t.Fatal(err)
		}
		w.mustDo(vedette.ApplyArgs{Manifest: manifest})
	}
	out := w.mustDo(vedette.ListArgs{Target: vedette.Target{Kind: "configmap", Namespace: "big"}})
	complete := 0
	for _, o := range out.Objects {
		if bytes.Contains(o, []byte(text)) {
			complete++
		}
	}
	if complete != 14 {
		t.Errorf("got %d complete objects, want 14", complete)
	}
}

// TestOperationsTakeEffectOnceDespiteCuts creates objects with generated names, each by one
// operation, while the connection is cut repeatedly. Each operation that was done must have created
// one object. The agent is not restarted, so no operation may be lost.
func TestOperationsTakeEffectOnceDespiteCuts(t *testing.T) {
	w := newOperationsEnv(t)
	w.createNamespace("once")
	const operations, concurrency = 400, 20
	ended := make(chan vedette.Outcome)
	for n := range concurrency {
		go func() {
			for i := range operations / concurrency {
				ended <- w.do(vedette.ApplyArgs{Strategy: vedette.StrategyCreateOnly, Manifest: fmt.Appendf(nil,
					`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"once-","namespace":"once","labels":{"once":"yes"}},"data":{"number":"%d"}}`, n*1000+i)})
			}
		}()
	}
	for i := range operations {
		if out := <-ended; out.State != vedette.Done {
			t.Errorf("%s %d: %s", out.State, out.Status, out.Message)
		}
		if i%20 == 7 { // while some are running, some have outcomes, and some outcomes are being sent
			w.proxy.Cut()
		}
	}
	numbers := map[string]int{}
	for _, raw := range w.mustDo(vedette.ListArgs{Target: vedette.Target{Kind: "configmap", Namespace: "once"}, LabelSelector: "once=yes"}).Objects {
		var o struct{ Data struct{ Number string } }
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatal(err)
		}
		numbers[o.Data.Number]++
	}
	for number, n := range numbers {
		if n != 1 {
			t.Errorf("object number %s was created %d times", number, n)
		}
	}
	if len(numbers) != operations {
		t.Errorf("got %d objects, want %d", len(numbers), operations)
	}
	if w.proxy.Accepted() < 10 {
		t.Errorf("got only %d connections", w.proxy.Accepted())
	}
}

// isOlder compares resourceVersions, which etcd increments.
func isOlder(a, b string) bool {
	return len(a) < len(b) || len(a) == len(b) && a < b
}
