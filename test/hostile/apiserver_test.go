package hostile

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	vserver "github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// agentMemoryLimit is the maximum memory of the agent with all hostile clusters. It includes the
// clusters and the server, because they run in the same process.
const agentMemoryLimit = 512 << 20

// apiServer is an API server with one kind, ConfigMaps. Each request is first passed to the attack,
// and answered honestly if that returns false.
type apiServer struct {
	url         string
	ca          []byte
	intercept   func(w http.ResponseWriter, r *http.Request) bool
	attackCount atomic.Int64 // number of requests that the attack answered

	mu      sync.Mutex
	version int
	changed chan struct{} // closed and replaced at each change
}

func startAPIServer(t *testing.T, intercept func(http.ResponseWriter, *http.Request) bool) *apiServer {
	t.Helper()
	s, stop := newAPIServer(intercept)
	t.Cleanup(stop)
	return s
}

func newAPIServer(intercept func(http.ResponseWriter, *http.Request) bool) (s *apiServer, stop func()) {
	s = &apiServer{intercept: intercept, version: 5, changed: make(chan struct{})}
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.StartTLS()
	s.url, s.ca = server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return s, func() {
		server.CloseClientConnections()
		server.Close()
	}
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.intercept != nil && s.intercept(&countingWriter{w, &s.attackCount}, r) {
		s.attackCount.Add(1)
		return
	}
	switch r.URL.Path {
	case "/version":
		fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
	case "/api/v1/namespaces/kube-system":
		fmt.Fprintf(w, `{"metadata":{"uid":%q}}`, s.url)
	case "/api":
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		fmt.Fprint(w, `{"kind":"APIGroupDiscoveryList","metadata":{},"items":[{"metadata":{},"versions":[{"version":"v1","freshness":"Current","resources":[
{"resource":"configmaps","responseKind":{"kind":"ConfigMap"},"scope":"Namespaced","singularResource":"configmap","verbs":["list","watch"]}]}]}]}`)
	case "/api/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["list","watch"]}]}`)
	case "/apis":
		fmt.Fprint(w, `{"kind":"APIGroupList","groups":[]}`)
	case configMaps:
		s.configMaps(w, r)
	default:
		fmt.Fprint(w, listOf(""))
	}
}

// countingWriter counts the bytes that an attack sends.
type countingWriter struct {
	http.ResponseWriter
	n *atomic.Int64
}

// Write counts the bytes.
func (c *countingWriter) Write(b []byte) (int, error) {
	c.n.Add(1)
	return c.ResponseWriter.Write(b)
}

// Unwrap is called by http.ResponseController.
func (c *countingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

const configMaps = "/api/v1/configmaps"

func listOf(items string) string {
	return `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[` + items + `]}`
}

// configMap returns an object in namespace n. rest is inserted into its JSON.
func configMap(name string, version int, rest string) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"n","name":%q,"uid":"u-%s","resourceVersion":"%d"}%s}`, name, name, version, rest)
}

func event(kind, object string) string { return `{"type":"` + kind + `","object":` + object + "}\n" }

// configMaps serves the object a, whose version change increases.
func (s *apiServer) configMaps(w http.ResponseWriter, r *http.Request) {
	if !isWatch(r) {
		fmt.Fprint(w, listOf(configMap("a", 5, "")))
		return
	}
	for sent := 5; ; {
		s.mu.Lock()
		version, changed := s.version, s.changed
		s.mu.Unlock()
		if version > sent {
			sent = version
			fmt.Fprint(w, event("MODIFIED", configMap("a", version, "")))
		} else {
			fmt.Fprint(w, event("BOOKMARK", configMap("a", version, "")))
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-changed:
		case <-time.After(time.Second):
		case <-r.Context().Done():
			return
		}
	}
}

// change changes the object and returns its new version.
func (s *apiServer) change() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
	return s.version
}

// current returns the version of the object.
func (s *apiServer) current() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

func isList(r *http.Request) bool { return r.URL.Path == configMaps && !r.URL.Query().Has("watch") }

func isWatch(r *http.Request) bool { return r.URL.Path == configMaps && r.URL.Query().Has("watch") }

// account returns the configuration of an account for an API server.
func (s *apiServer) account(name string) agent.Account {
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {token: t}}], clusters: [{name: a, cluster: {server: %q, certificate-authority-data: %s}}]}`,
		s.url, base64JSON(s.ca))
	return agent.Account{Name: vedette.AccountName(name), Access: kube.Access{KubeconfigContents: []byte(kubeconfig)}, Selection: watch.Selection{Kinds: []string{"all"}}}
}

func base64JSON(b []byte) string {
	encoded, err := json.Marshal(b)
	if err != nil {
		panic(err) // cannot happen: bytes can always be encoded
	}
	return string(encoded)
}

// TestHostileAPIServer runs an agent with a healthy cluster and clusters with each of the attacks,
// all at once, for ten changes of the healthy cluster and until each attack has happened. The
// changes must be visible, and memory must stay within the limit.
func TestHostileAPIServer(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	srv, err := vserver.Listen(vserver.Config{ID: "s1", REST: "127.0.0.1:0", GRPC: "127.0.0.1:0",
		Store: sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "v.db"), Log: log}}, log)
	if err != nil {
		t.Fatal(err)
	}
	runInBackground(t, srv.Run)
	healthy := startAPIServer(t, nil)
	accounts, clusters := []agent.Account{healthy.account("well")}, map[string]*apiServer{}
	for name, intercept := range apiServerAttacks() {
		clusters[name] = startAPIServer(t, intercept)
		accounts = append(accounts, clusters[name].account(strings.ReplaceAll(name, " ", "-")))
	}
	runInBackground(t, agent.New(agent.Config{
		Uplink:         uplink.Config{Target: srv.GRPC().String(), Creds: insecure.NewCredentials(), Agent: "a1"},
		Accounts:       accounts,
		Watch:          watch.Config{MinBackoff: 20 * time.Millisecond, MaxBackoff: 2 * time.Second, MinDeniedBackoff: time.Second, MaxDeniedBackoff: time.Second, IdleTimeout: 3 * time.Second, PagePermitTimeout: 50 * time.Millisecond},
		ConnectOptions: kube.Options{HeaderTimeout: time.Second, ProgressTimeout: time.Second},
	}, log).Run)
	peak := watchMemory(t)
	url := "http://" + srv.REST().String()
	awaitVisible(t, url, 5)
	for range 10 {
		began := time.Now()
		awaitVisible(t, url, healthy.change())
		t.Logf("a change of the healthy cluster was visible after %v", time.Since(began).Round(time.Millisecond))
	}
	for name, cluster := range clusters {
		awaitCondition(t, "attack: "+name, func() bool { return cluster.attackCount.Load() > 0 })
	}
	awaitVisible(t, url, healthy.change())
	if used := peak(); used > agentMemoryLimit {
		t.Errorf("got %d MiB in use, want at most %d", used>>20, agentMemoryLimit>>20)
	} else {
		t.Logf("maximum memory in use: %d MiB", used>>20)
	}
}

// runInBackground runs a function until the test ends.
func runInBackground(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// watchMemory samples the memory in use. peak ends that and returns the maximum.
func watchMemory(t *testing.T) (peak func() uint64) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan uint64)
	go func() {
		var highest uint64
		for ctx.Err() == nil {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			highest = max(highest, now.HeapInuse+now.StackInuse)
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		done <- highest
	}()
	return func() uint64 {
		cancel()
		return <-done
	}
}

// awaitVisible waits until the API returns a version of the healthy cluster's object.
func awaitVisible(t *testing.T, url string, version int) {
	t.Helper()
	want := fmt.Sprintf(`"resourceVersion":"%d"`, version)
	awaitCondition(t, want, func() bool {
		resp, err := http.Get(url + "/vedette/v1/objects/well/configmaps/n/a")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(strings.ReplaceAll(string(body), `": "`, `":"`), want)
	})
}

func awaitCondition(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("timeout waiting for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
