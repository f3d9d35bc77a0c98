package convergence

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// door is the way of one agent to a cluster, where requests can be stopped at an
// exact moment. It asks the API server in its own name.
type door struct {
	server *httptest.Server
	pass   http.Handler

	mu    sync.Mutex
	stop  *stop
	spoil func(http.Handler) http.Handler // what stands before the cluster; nil for nothing
}

// spoiled puts something before the cluster, or takes it away where it is nil.
func (d *door) spoiled(by func(http.Handler) http.Handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spoil = by
}

// way is what answers requests now.
func (d *door) way() http.Handler {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spoil != nil {
		return d.spoil(d.pass)
	}
	return d.pass
}

// stop is what is done to the next request that changes something.
type stop struct {
	passed  bool          // the API server is asked before the request is stopped
	answers bool          // and its answer goes back
	reached chan struct{} // closed when that moment has come
	goOn    chan struct{} // closed by the test, to let it go on
}

// through makes an agent reach its cluster by a door, and starts it anew.
func (w *world) through(t *testing.T, a *agent, c *cluster) *door {
	target, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	d := &door{pass: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: c.Client().Transport, FlushInterval: -1,
		ErrorLog: log.New(io.Discard, "", 0)}} // agents that are killed break off their requests
	d.server = httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(func() {
		a.kill() // or its watches would be waited for
		d.server.Close()
	})
	a.kill()
	w.write(a.id+"-"+c.name+".kubeconfig", fmt.Sprintf(`{clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}`, d.server.URL))
	a.start()
	return d
}

// next stops the next request that changes something in the first namespace.
func (d *door) next(passed, answers bool) *stop {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop = &stop{passed: passed, answers: answers, reached: make(chan struct{}), goOn: make(chan struct{})}
	return d.stop
}

func (d *door) take(r *http.Request) *stop {
	if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/namespaces/"+namespaces[0]+"/") {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := d.stop
	d.stop = nil
	return taken
}

func (d *door) serve(w http.ResponseWriter, r *http.Request) {
	s := d.take(r)
	if s == nil {
		d.way().ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body) // until it has been read nobody hears that the agent is gone
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	if s.passed {
		d.pass.ServeHTTP(answer, r)
	}
	close(s.reached)
	if !s.answers {
		select {
		case <-s.goOn:
		case <-r.Context().Done(): // the agent is gone, and nothing of it goes on
			return
		}
	}
	if !s.passed {
		d.pass.ServeHTTP(w, r)
		return
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the agent may be gone
}
