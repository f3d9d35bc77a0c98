package standin

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
)

// Server is a running stand-in. It is safe for concurrent use.
type Server struct {
	server *httptest.Server
	state  state
	log    taskLog

	mu    sync.Mutex
	fault Fault
	thaw  chan struct{} // closed when it is no longer frozen; nil if it is not frozen
}

// Start starts a stand-in on a free port of 127.0.0.1, which is closed when the test ends.
func Start(t testing.TB, accounts []Account, objects []Object) *Server {
	t.Helper()
	s := &Server{state: state{accounts: accounts, objects: objects}, log: taskLog{byRequest: map[string]string{}, tasks: map[string]task{}}}
	s.server = httptest.NewServer(s.handler())
	t.Cleanup(func() {
		s.Misbehave(nil)
		s.Thaw()
		s.server.CloseClientConnections()
		s.server.Close()
	})
	return s
}

// URL returns the base URL.
func (s *Server) URL() string { return s.server.URL }

// SetAccounts changes the accounts. Objects of other accounts are not shown.
func (s *Server) SetAccounts(accounts []Account) {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	s.state.accounts = accounts
}

// SetObjects changes the objects.
func (s *Server) SetObjects(objects []Object) {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	s.state.objects = objects
}

// Answer is what the stand-in answers to one request.
type Answer struct {
	Status int
	Body   []byte
}

func answerJSON(v any) Answer {
	body, err := json.Marshal(v)
	if err != nil {
		return failure(http.StatusInternalServerError, err.Error())
	}
	return Answer{http.StatusOK, body}
}

// failure returns an answer as Spring writes errors.
func failure(status int, message string) Answer {
	a := answerJSON(map[string]any{"error": http.StatusText(status), "message": message, "status": status, "timestamp": "2026-01-02T03:04:05.678+00:00"})
	a.Status = status
	return a
}

func notFound(message string) Answer { return failure(http.StatusNotFound, message) }

// write sends an answer.
func (a Answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the client may be gone
}

// handler returns the endpoints.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	routes := map[string]func(*http.Request, snapshot) Answer{
		"GET /credentials":                            s.credentials,
		"GET /credentials/{account}":                  s.credential,
		"GET /artifacts/credentials":                  s.artifactCredentials,
		"GET /features/stages":                        s.stages,
		"GET /applications":                           s.applications,
		"GET /applications/{app}":                     s.application,
		"GET /applications/{app}/clusters":            s.clusters,
		"GET /applications/{app}/clusters/{account}":  s.accountClusters,
		"GET /applications/{app}/serverGroups":        s.serverGroups,
		"GET /applications/{app}/serverGroupManagers": s.managers,
		"GET /applications/{app}/loadBalancers":       s.loadBalancers,
		"GET /applications/{app}/rawResources":        s.rawResources,
		"GET /projects/{project}/clusters":            s.projectClusters,
		"GET /serverGroups":                           s.allServerGroups,
		"GET /serverGroups/{account}/{region}/{name}": s.namedServerGroup,
		"GET /securityGroups":                         s.securityGroups,
		"GET /manifests/{account}/{location}/{name}":  s.manifest,
		"GET /search":                                 s.search,
		"GET /task":                                   s.tasks,
		"GET /task/{id}":                              s.task,
		"POST /kubernetes/ops":                        s.submit,
		"POST /ops":                                   s.submit,
		"GET /": func(r *http.Request, _ snapshot) Answer {
			return notFound("No endpoint " + r.Method + " " + r.URL.Path)
		},
	}
	maps.Copy(routes, s.pluginRoutes())
	for pattern, derive := range routes {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, derive) })
	}
	return mux
}

// serve answers when the stand-in is not frozen. A frozen Clouddriver continues with the requests that it has
// received, although their clients may have left; only reads end with their clients here.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, derive func(*http.Request, snapshot) Answer) {
	fault, thaw := s.behaviour()
	if thaw != nil {
		var left <-chan struct{}
		if r.Method == http.MethodGet {
			left = r.Context().Done()
		}
		select {
		case <-thaw:
		case <-left:
			return
		}
	}
	honest := derive(r, s.state.snapshot())
	if fault != nil && r.Method == http.MethodGet {
		fault(w, r, honest)
		return
	}
	honest.write(w)
}

func (s *Server) behaviour() (Fault, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault, s.thaw
}

// Freeze makes the stand-in accept requests without answering until Thaw.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.thaw == nil {
		s.thaw = make(chan struct{})
	}
}

// Thaw ends Freeze. Requests that wait are answered.
func (s *Server) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.thaw != nil {
		close(s.thaw)
		s.thaw = nil
	}
}

// Misbehave changes how the stand-in answers reads; nil makes it honest again.
func (s *Server) Misbehave(fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}
