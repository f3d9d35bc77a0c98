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

// breakpointProxy is the way of one agent to a cluster, where requests can be stopped at an
// exact moment. It asks the API server in its own name.
type breakpointProxy struct {
	server  *httptest.Server
	forward http.Handler

	mu         sync.Mutex
	breakpoint *breakpoint
	filter     func(http.Handler) http.Handler // what stands before the cluster; nil for nothing
}

// setFilter puts something before the cluster, or takes it away where it is nil.
func (p *breakpointProxy) setFilter(filter func(http.Handler) http.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filter = filter
}

// handler is what answers requests now.
func (p *breakpointProxy) handler() http.Handler {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filter != nil {
		return p.filter(p.forward)
	}
	return p.forward
}

// breakpoint is what is done to the next request that changes something.
type breakpoint struct {
	forwarded bool          // the API server is asked before the request is stopped
	answered  bool          // and its answer goes back
	reached   chan struct{} // closed when that moment has come
	resume    chan struct{} // closed by the test, to let it go on
}

// routeThroughBreakpoints makes an agent reach its cluster by a door, and starts it anew.
func (w *world) routeThroughBreakpoints(t *testing.T, a *agent, c *cluster) *breakpointProxy {
	target, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &breakpointProxy{forward: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: c.Client().Transport, FlushInterval: -1,
		ErrorLog: log.New(io.Discard, "", 0)}} // agents that are killed break off their requests
	p.server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(func() {
		a.kill() // or its watches would be waited for
		p.server.Close()
	})
	a.kill()
	w.write(a.id+"-"+c.name+".kubeconfig", fmt.Sprintf(`{clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}`, p.server.URL))
	a.start()
	return p
}

// breakOnNext stops the next request that changes something in the first namespace.
func (p *breakpointProxy) breakOnNext(forwarded, answered bool) *breakpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.breakpoint = &breakpoint{forwarded: forwarded, answered: answered, reached: make(chan struct{}), resume: make(chan struct{})}
	return p.breakpoint
}

func (p *breakpointProxy) takeBreakpoint(r *http.Request) *breakpoint {
	if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/namespaces/"+namespaces[0]+"/") {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.breakpoint
	p.breakpoint = nil
	return taken
}

func (p *breakpointProxy) serve(w http.ResponseWriter, r *http.Request) {
	bp := p.takeBreakpoint(r)
	if bp == nil {
		p.handler().ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body) // until it has been read nobody hears that the agent is gone
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	if bp.forwarded {
		p.forward.ServeHTTP(answer, r)
	}
	close(bp.reached)
	if !bp.answered {
		select {
		case <-bp.resume:
		case <-r.Context().Done(): // the agent is gone, and nothing of it goes on
			return
		}
	}
	if !bp.forwarded {
		p.forward.ServeHTTP(w, r)
		return
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the agent may be gone
}
