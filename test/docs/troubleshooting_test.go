package docs

import (
	"context"
	"database/sql"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/proxy"
)

var troubleshooting = &page{path: "../../docs/troubleshooting.md"}

// symptoms bring about what a section of the page describes.
var symptoms = map[string]func(*testing.T, *section){
	"If all is well":                          showHealthy,
	"An account is missing":                   showMissing,
	"An account is not Ready":                 showNotReady,
	"An account is Ready, and shows the past": showOld,
	"Feeds are denied":                        showDenied,
	"An operation is refused":                 showRefused,
	"An operation is lost":                    showLost,
	"An agent connects again and again":       showReconnects,
	"The server is slow":                      showSlow,
	"A program needs too much memory":         showMemory,
	"The database is full":                    showFull,
	"A certificate has expired":               showExpired,
	"Spinnaker shows nothing":                 showNothing,
}

// TestSymptomsAreShownAsPrinted compares what the programs print with what the page shows, symptom by symptom.
func TestSymptomsAreShownAsPrinted(t *testing.T) {
	headings := troubleshooting.headings(t)
	for symptom := range symptoms {
		if !slices.Contains(headings, symptom) {
			t.Errorf("the page has no section %q with an output", symptom)
		}
	}
	for _, heading := range headings {
		show := symptoms[heading]
		if show == nil {
			t.Errorf("no test shows what is in %q", heading)
			continue
		}
		t.Run(heading, func(t *testing.T) {
			t.Parallel()
			show(t, troubleshooting.section(t, heading))
		})
	}
}

const (
	agentFile  = "/etc/vedette/agent/armory-agent.yml"
	checkAgent = "vedette-agent check --connect --config " + agentFile
	scaleWeb   = "vedette scale deployment web --replicas 3 -n shop --account prod-eu"
)

func showHealthy(t *testing.T, s *section) {
	w := newScenario(t, options{})
	w.startReady()
	s.show(w.command("vedette accounts", "Ready"), w.command("vedette agents", "InEffect"), w.command("vedette feeds", "live"))
	s.show(w.command("curl -s localhost:7002/health/readiness", "UP"), w.command("curl -s localhost:8082/ready", "true"))
	s.show(w.command(checkAgent, "rights: may"))
}

func showMissing(t *testing.T, s *section) {
	unknownKey := newScenario(t, options{accounts: `  - name: prod-eu
    kubeconfigFile: KUBECONFIG
    namespace: [shop]
`})
	w := unknownKey
	w.agent.Start()
	s.show(w.log(w.agent, "no connection to the server"))
	w.server.Start()
	s.show(w.command("vedette accounts", "No resources"), w.command("vedette agents", "AccountsRejected"))
	s.show(w.log(w.agent, "account left out"))

	w = newScenario(t, options{})
	w.api.Close()
	w.start()
	s.show(w.command("vedette accounts", "No resources"), w.command("vedette agents", "prod-eu"))
	s.show(w.log(w.agent, "cannot reach the cluster"))
}

func showNotReady(t *testing.T, s *section) {
	w := newScenario(t, options{})
	w.startReady()
	w.api.Close()
	s.show(w.command("vedette accounts", "Stale"), w.command("vedette feeds", "failing"))

	w = newScenario(t, options{})
	w.startReady()
	w.agent.Stop()
	s.show(w.command("vedette accounts", "Orphaned"), w.command("vedette get deployments -n shop", "web"))

	w = newScenario(t, options{accounts: `  - name: prod-eu
    kubeconfigFile: KUBECONFIG
    kinds: [Deploymnet]
`})
	w.start()
	s.show(w.command("vedette accounts", "Misconfigured"))
}

func showOld(t *testing.T, s *section) {
	w := newScenario(t, options{})
	w.startReady()
	w.api.Freeze(proxy.Up, proxy.Down)
	s.show(w.command("vedette accounts", "Stale", "failing"), w.command("vedette get deployments -n shop", "last report"))
	w.api.Heal()
	w.awaitOutput("vedette accounts", "Ready")
	w.write("/etc/vedette/agent/prod-eu.yml", "apiVersion: v1\nkind: Config\nusers: [")
	s.show(w.log(w.agent, "prod-eu.yml"))
}

func showDenied(t *testing.T, s *section) {
	w := newScenario(t, options{user: "reader"})
	w.grant("reader", "shop", "apps", "deployments", "get", "list", "watch")
	w.start()
	s.show(w.command("vedette accounts", "Partial"), w.command("vedette feeds", "denied", "live"))
	s.show(w.command("vedette-agent rbac prod-eu --read-only --config "+agentFile+" | grep missing", "configmaps"))
}

func (w *scenario) grant(user, namespace, group, resource string, verbs ...string) {
	w.t.Helper()
	if err := grant(w.t.Context(), w.plane, user, namespace, group, resource, verbs...); err != nil {
		w.t.Fatal(err)
	}
}

func showRefused(t *testing.T, s *section) {
	w := newScenario(t, options{user: "watcher"})
	w.grant("watcher", "shop", "apps", "deployments", "get", "list", "watch")
	w.grant("watcher", "shop", "", "configmaps", "get", "list", "watch")
	w.startReady()
	s.show(w.once(scaleWeb), w.command("vedette ops", "failed"))
	w.agent.Stop()
	s.show(w.once(scaleWeb))
}

// showLost loses the answer to a request after the API server has begun to execute it.
func showLost(t *testing.T, s *section) {
	w := newScenario(t, options{accounts: strings.ReplaceAll(defaultAccounts, "[shop]", "[lost]")})
	if err := createNamespace(t.Context(), w.plane, "lost"); err != nil {
		t.Fatal(err)
	}
	if err := createDeployment(t.Context(), w.plane, "lost", "web"); err != nil {
		t.Fatal(err)
	}
	w.startReady()
	webhook(t, w.plane, "lost", sync.OnceFunc(func() { w.api.Freeze(proxy.Down) }))
	s.show(w.once("vedette delete deployment web -n lost --account prod-eu --timeout 10s"), w.command("vedette ops", "lost"))
	w.api.Cut()
	w.api.Heal()
	s.show(w.command("vedette get deployments -n lost"))
}

// webhook lets the API server call a function before it deletes a Deployment in a namespace.
func webhook(t *testing.T, plane *controlplane.Plane, namespace string, called func()) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review struct {
			APIVersion, Kind string
			Request          struct{ UID string }
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		called()
		rw.Header().Set("Content-Type", "application/json")
		answer := controlplane.Object{"apiVersion": review.APIVersion, "kind": review.Kind,
			"response": controlplane.Object{"uid": review.Request.UID, "allowed": true}}
		if err := json.NewEncoder(rw).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	path := "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	if err := plane.Create(t.Context(), path, controlplane.Object{"metadata": controlplane.Object{"name": namespace}, "webhooks": []controlplane.Object{{
		"name": namespace + ".example.com", "admissionReviewVersions": []string{"v1"}, "sideEffects": "None",
		"clientConfig":      controlplane.Object{"url": server.URL, "caBundle": ca},
		"namespaceSelector": controlplane.Object{"matchLabels": controlplane.Object{"kubernetes.io/metadata.name": namespace}},
		"rules":             []controlplane.Object{{"apiGroups": []string{"apps"}, "apiVersions": []string{"v1"}, "operations": []string{"DELETE"}, "resources": []string{"deployments"}}},
	}}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Delete(context.WithoutCancel(t.Context()), path+"/"+namespace); err != nil {
			t.Error(err)
		}
	})
}

func showReconnects(t *testing.T, s *section) {
	port := reserve(t)
	w := newScenario(t, options{proxied: true, agent: fmt.Sprintf("prometheus: {enabled: true, host: 127.0.0.1, port: %d}\n", port)})
	w.rename(fmt.Sprintf("localhost:%d", port), "localhost:8008")
	w.startReady()
	w.uplink.Blackhole()
	s.show(w.log(w.agent, "heartbeats"))
	s.show(w.command("curl -s localhost:8008/metrics | grep ^vedette_agent_disconnections_total", "} 1"))
}

// showSlow lets another program lock the database.
func showSlow(t *testing.T, s *section) {
	w := newScenario(t, options{})
	w.startReady()
	db, err := sql.Open("sqlite", "file:"+w.path("/var/lib/vedette/vedette.db")+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}()
	if err := w.plane.Patch(t.Context(), "/api/v1/namespaces/shop/configmaps/settings", `{"metadata": {"labels": {"changed": "`+
		fmt.Sprint(time.Now().Unix())+`"}}}`); err != nil {
		t.Fatal(err)
	}
	s.show(w.command("vedette accounts", "database"), w.command("curl -s localhost:7002/health/readiness"))
	s.show(w.log(w.server, "level=WARN"))
}

// showMemory lets clients request what they do not read.
func showMemory(t *testing.T, s *section) {
	port := reserve(t)
	w := newScenario(t, options{server: fmt.Sprintf("prometheus: {enabled: true, port: %d}\n", port),
		accounts: strings.ReplaceAll(defaultAccounts, "[shop]", "[files]")})
	w.rename(fmt.Sprintf("localhost:%d", port), "localhost:8009")
	if err := createNamespace(t.Context(), w.plane, "files"); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		if err := createConfigMap(t.Context(), w.plane, "files", fmt.Sprintf("file-%d", i), strings.Repeat("x", 900<<10)); err != nil {
			t.Fatal(err)
		}
	}
	w.startReady()
	for range 8 {
		go requestWithoutReading(t.Context(), fmt.Sprintf("127.0.0.1:%d", w.rest),
			"/vedette/v1/objects?kind=ConfigMap&namespace=files&account=prod-eu&include=body")
	}
	s.show(w.command("vedette get configmaps -n files --account prod-eu -o json | tail -1", "memory"))
	s.show(w.command("curl -s localhost:8009/metrics | grep -E '^process_resident_memory_bytes|limit_waits_total.*rejected'", "rejected"))
}

// requestWithoutReading requests something again and again, because the server ends connections that nobody reads from.
func requestWithoutReading(ctx context.Context, address, path string) {
	for ctx.Err() == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second):
		}
		_ = conn.Close()
	}
}

// showFull fills the disk of the database.
func showFull(t *testing.T, s *section) {
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("needs a small file system, which only root can mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w := newScenario(t, options{dataDir: dir, accounts: strings.ReplaceAll(defaultAccounts, "[shop]", "[full]")})
	if err := createNamespace(t.Context(), w.plane, "full"); err != nil {
		t.Fatal(err)
	}
	w.startReady()
	fill(t, filepath.Join(dir, "other"))
	changes := 0
	change := func(ctx context.Context, plane *controlplane.Plane) error {
		changes++
		return createConfigMap(ctx, plane, "full", fmt.Sprintf("file-%d", changes), strings.Repeat("x", 500<<10))
	}
	if err := change(t.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	s.show(w.command("vedette accounts", "full"), w.command("curl -s localhost:7002/health/readiness", "is full"))
	s.show(w.log(w.server, "changes wait", "is full"))
	if err := os.Remove(filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	s.show(w.command("vedette accounts", "Ready"))
}

// fill writes to a file until the disk is full.
func fill(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	for range 1 << 20 {
		if _, err := f.Write(block); err != nil {
			return
		}
	}
	t.Fatalf("the disk of %s does not get full", file)
}

func showExpired(t *testing.T, s *section) {
	ca := newAuthority(t)
	w := newScenario(t, options{})
	ca.write(w, "/etc/vedette/ca.crt")
	ca.issue(w, "/etc/vedette/server/tls", "vedette-server", time.Now().Add(-time.Minute))
	ca.issue(w, "/etc/vedette/agent/tls", "agent-eu", time.Now().Add(-time.Minute))
	tls := fmt.Sprintf("clouddriver.tls: {cacertFile: %s, clientCertFile: %s, clientKeyFile: %s}\n",
		w.path("/etc/vedette/ca.crt"), w.path("/etc/vedette/agent/tls.crt"), w.path("/etc/vedette/agent/tls.key"))
	w.extend(w.agentConfig, tls)
	w.extend(w.serverConfig, fmt.Sprintf("grpc.server.security: {enabled: true, certificateChain: %s, privateKey: %s, clientAuth: REQUIRE, trustCertCollection: %s}\n",
		w.path("/etc/vedette/server/tls.crt"), w.path("/etc/vedette/server/tls.key"), w.path("/etc/vedette/ca.crt")))
	w.start()
	s.show(w.log(w.agent, "no connection to the server"))
	s.show(w.command(checkAgent, "expired"))
	ca.issueValid(w, "/etc/vedette/server/tls", "vedette-server")
	s.show(w.log(w.server, "agent connection refused", "valid only from"))
	s.show(w.log(w.agent, "does not accept this agent's certificate"))
	ca.issueValid(w, "/etc/vedette/agent/tls", "agent-eu")
	s.show(w.command("vedette agents", "agent-eu"))
}

// extend appends to a configuration.
func (w *scenario) extend(file, text string) {
	w.t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		w.t.Fatal(err)
	}
}

func showNothing(t *testing.T, s *section) {
	w := newScenario(t, options{user: "nobody"})
	w.start()
	s.show(w.command("vedette accounts", "Denied"), w.command("curl -s localhost:7002/applications", "["))

	fiat := fmt.Sprintf("127.0.0.1:%d", reserve(t))
	w = newScenario(t, options{server: fmt.Sprintf("services.fiat: {enabled: true, baseUrl: \"http://%s\"}\n", fiat)})
	w.rename(fiat, "10.20.0.3:7003")
	w.startReady()
	s.show(w.command("curl -s localhost:7002/applications -H 'X-SPINNAKER-USER: ann'", "cannot be looked up now"))
	s.show(w.log(w.server, "Fiat"))

	w = newScenario(t, options{server: fmt.Sprintf("upstream.baseUrl: http://127.0.0.1:%d\n", reserve(t))})
	w.startReady()
	s.show(w.command("curl -s localhost:7002/credentials", "upstream"))
}
