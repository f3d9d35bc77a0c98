package upstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
)

// The accounts of the tests: one of an agent, which the upstream Clouddriver knows too, and one that
// only the upstream Clouddriver knows.
const (
	ourAccount   = "agents"
	theirAccount = "theirs"
)

// fakeAccounts are the accounts of agents, or an error.
type fakeAccounts struct {
	names []vedette.AccountName
	err   error
}

func (f *fakeAccounts) AccountNames(context.Context) ([]vedette.AccountName, error) {
	return f.names, f.err
}

// ourTask is the only task of this server.
const ourTask = "01JD8Q4S0V6K0G3H8B3R4T5Y6Z"

// isMissingTask reports whether a request is for a task that this server does not have.
func isMissingTask(r *http.Request) bool {
	_, id, isTask := strings.Cut(r.URL.Path, "/task/")
	return isTask && !strings.HasPrefix(id, ourTask)
}

// side is one of both servers. It answers requests as a test defines, and records them.
type side struct {
	name string
	mu   sync.Mutex
	seen []*http.Request // with the body in the header "Test-Body"
	// answer writes the response; nil writes the name of the side.
	answer http.HandlerFunc
}

func (s *side) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has left
	}
	kept := r.Clone(context.WithoutCancel(r.Context()))
	kept.Header.Set("Test-Body", string(body))
	s.mu.Lock()
	s.seen = append(s.seen, kept)
	answer := s.answer
	s.mu.Unlock()
	if s.name == "own" && isMissingTask(r) {
		answer = answerJSON(http.StatusNotFound, notFoundBody)
	}
	if answer != nil {
		answer(w, r)
		return
	}
	w.Header().Set("Test-Side", s.name)
	_, _ = fmt.Fprintf(w, "answer of %s", s.name)
}

// requests returns what the side was asked since the last call.
func (s *side) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// answerJSON returns a handler that answers with a status and a body.
func answerJSON(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// world is a server in front of an upstream Clouddriver, which is a real HTTP server.
type world struct {
	own      *side
	theirs   *side
	accounts *fakeAccounts
	handler  *Handler
	url      string
}

// newWorld starts both. The upstream Clouddriver has a path before its API, as behind a gateway.
func newWorld(t testing.TB, change func(*Config)) *world {
	t.Helper()
	w := &world{own: &side{name: "own"}, theirs: &side{name: "theirs"}, accounts: &fakeAccounts{names: []vedette.AccountName{ourAccount}}}
	upstreamServer := httptest.NewServer(http.StripPrefix("/base", w.theirs))
	t.Cleanup(upstreamServer.Close)
	cfg := Config{BaseURL: upstreamServer.URL + "/base"}
	if change != nil {
		change(&cfg)
	}
	remote, err := NewRemote(cfg, w.accounts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remote.client.transport.http.CloseIdleConnections)
	w.handler = New(remote, w.own).(*Handler)
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// send sends a request as Orca would, and returns the response with its body.
func (w *world) send(t testing.TB, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-SPINNAKER-USER", "ann@example.com")
	r.Header.Set("X-SPINNAKER-ACCOUNTS", "agents,theirs")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return response, strings.TrimSpace(string(raw))
}
