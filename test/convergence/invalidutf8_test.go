package convergence

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// twoAccounts is one agent with two accounts, each of its own cluster.
var twoAccounts = topology{clusters: 2, accounts: []int{0, 1}, agents: [][]int{{0, 1}}, outbox: "8MiB", grace: "10m"}

// TestInvalidUTF8InErrors makes the proxy in front of one cluster refuse requests with a status
// line in Latin-1, which is not UTF-8, as real proxies do. The agent's other account must not be
// affected, and the first must recover as soon as the proxy forwards requests again.
func TestInvalidUTF8InErrors(t *testing.T) {
	runOn(t, anyDatabase(), twoAccounts, func(t *testing.T, w *world) {
		var refuse atomic.Bool
		a := w.agents[0]
		a.Kill()
		w.routeThroughTunnel(a, w.clusters[0], newTunnel(t, &refuse))
		testCorruptedAccount(t, w, "reaching", func() { refuse.Store(true) }, func() { refuse.Store(false) })
	})
}

// TestInvalidUTF8InObjects makes a proxy write bytes that are not UTF-8 into labels of one
// cluster's objects.
func TestInvalidUTF8InObjects(t *testing.T) {
	runOn(t, anyDatabase(), twoAccounts, func(t *testing.T, w *world) {
		p := w.routeThroughBreakpoints(t, w.agents[0], w.clusters[0])
		testCorruptedAccount(t, w, "reporting", func() { p.setFilter(corruptLabels) }, func() {
			p.setFilter(nil)
			p.server.CloseClientConnections()
		})
	})
}

// testCorruptedAccount corrupts the responses to the first account from the start of its agent, and
// then heals it. The other account must continue, over the same connection to the server.
func testCorruptedAccount(t *testing.T, w *world, state string, corrupt, heal func()) {
	a := w.agents[0]
	must(t, w.clusters[1].Create(t.Context(), nsKind.list(""), nsKind.make(rand.New(rand.NewPCG(2, 2)), namespaces[0])))
	a.Kill()
	accepted := a.link.Accepted()
	corrupt()
	a.Start()
	if !w.eventually(convergenceTimeout, func(ctx context.Context) bool { return strings.HasPrefix(a.role(ctx, "account-0"), state) }) {
		t.Errorf("corrupted account: got role %q, want %s", a.role(t.Context(), "account-0"), state)
	}
	load := &workload{cluster: w.clusters[0], rng: rand.New(rand.NewPCG(9, 9)), keepKinds: true}
	for range 100 {
		load.step(t.Context())
	}
	w.createInAndAwait(w.clusters[1], "beside")
	if n := a.link.Accepted() - accepted; n != 1 {
		t.Errorf("got %d connections to the server, want 1", n)
	}
	heal()
	w.awaitConvergence()
}

// routeThroughTunnel routes an agent's requests to a cluster through an HTTP proxy.
func (w *world) routeThroughTunnel(a *agent, c *cluster, address string) {
	kubeconfig := w.path(a.id + "-" + c.name + ".kubeconfig")
	w.replace(kubeconfig, "    certificate-authority-data:", "    proxy-url: http://"+address+"\n    certificate-authority-data:")
	w.replace(w.path(a.id+".yml"), "kubernetes:\n  noProxy: true", "kubernetes:\n  noProxy: false")
}

func (w *world) replace(path, old, replacement string) {
	text, err := os.ReadFile(path)
	must(w.t, err)
	if !strings.Contains(string(text), old) {
		w.t.Fatalf("%s does not contain %q", path, old)
	}
	must(w.t, os.WriteFile(path, []byte(strings.Replace(string(text), old, replacement, 1)), 0o600))
}

// newTunnel starts an HTTP proxy that forwards TLS connections, or refuses them with a status line
// in Latin-1.
func newTunnel(t *testing.T, refuse *atomic.Bool) (address string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return // the agent has gone
		}
		defer conn.Close()
		if refuse.Load() {
			fmt.Fprint(conn, "HTTP/1.1 407 Acc\xe8s refus\xe9\r\nContent-Length: 0\r\n\r\n")
			return
		}
		target, err := net.Dial("tcp", r.Host)
		if err != nil {
			return
		}
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { defer conn.Close(); _, _ = io.Copy(conn, target) }()
		defer target.Close()
		_, _ = io.Copy(target, conn)
	}))
	t.Cleanup(server.CloseClientConnections)
	return server.Listener.Addr().String()
}

// corruptLabels replaces the values of labels by the same number of other bytes.
func corruptLabels(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Accept-Encoding")
		next.ServeHTTP(&corruptingWriter{ResponseWriter: w}, r)
	})
}

type corruptingWriter struct{ http.ResponseWriter }

// Write corrupts a piece of the response.
func (s *corruptingWriter) Write(p []byte) (int, error) {
	p = bytes.Clone(p)
	for _, colour := range colours {
		corrupted := bytes.Repeat([]byte{0xe8}, len(colour))
		p = bytes.ReplaceAll(p, []byte(`"`+colour+`"`), append(append([]byte(`"`), corrupted...), '"'))
	}
	return s.ResponseWriter.Write(p)
}

// Flush implements http.Flusher, so that watch events are passed on at once.
func (s *corruptingWriter) Flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() }

// createInAndAwait creates an object in a cluster and waits until it is stored.
func (w *world) createInAndAwait(c *cluster, name string) {
	w.t.Helper()
	if err := c.Create(w.t.Context(), configMap.list(namespaces[0]), configMap.make(rand.New(rand.NewPCG(2, 2)), name)); err != nil {
		w.t.Fatal(err)
	}
	if !w.eventually(convergenceTimeout, func(ctx context.Context) bool {
		return w.count(ctx, `SELECT COUNT(*) FROM objects WHERE name = '`+name+`'`) > 0
	}) {
		w.t.Fatalf("%s is not stored after %v", name, convergenceTimeout)
	}
}
