package convergence

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// breakpointProxy is a proxy between one agent and a cluster that can stop requests at an exact
// moment. It sends requests as itself.
type breakpointProxy struct {
	server  *httptest.Server
	forward http.Handler

	mu         sync.Mutex
	breakpoint *breakpoint
	filter     func(http.Handler) http.Handler // handler in front of the cluster; nil for none
}

// setFilter sets the handler in front of the cluster; nil removes it.
func (p *breakpointProxy) setFilter(filter func(http.Handler) http.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filter = filter
}

// handler returns the handler for requests now.
func (p *breakpointProxy) handler() http.Handler {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filter != nil {
		return p.filter(p.forward)
	}
	return p.forward
}

// breakpoint says where to stop the next request that changes something.
type breakpoint struct {
	forwarded bool          // after the API server has answered
	answered  bool          // after the response was passed on
	reached   chan struct{} // closed when the breakpoint is reached
	resume    chan struct{} // closed by the test to continue
}

// routeThroughBreakpoints routes an agent's requests to a cluster through a new breakpointProxy,
// and restarts the agent.
func (w *world) routeThroughBreakpoints(t *testing.T, a *agent, c *cluster) *breakpointProxy {
	target, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &breakpointProxy{forward: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: c.Client().Transport, FlushInterval: -1,
		ErrorLog: log.New(io.Discard, "", 0)}} // because killed agents abort their requests
	p.server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(func() {
		a.Kill() // because Close waits for the agent's watches
		p.server.Close()
	})
	a.Kill()
	w.write(a.id+"-"+c.name+".kubeconfig", fmt.Sprintf(`{clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}`, p.server.URL))
	a.Start()
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
	body, err := io.ReadAll(r.Body) // because the server notices that the client has gone only after the body was read
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
		case <-r.Context().Done(): // the agent has gone, so nothing continues
			return
		}
	}
	if !bp.forwarded {
		p.forward.ServeHTTP(w, r)
		return
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the agent may have gone
}
