package upstream

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/accountlist"
	"github.com/vedette-io/vedette/server/store/lastanswers"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/versions"
)

// The accounts of the tests: one of an agent, which the upstream Clouddriver knows too, and one that
// only the upstream Clouddriver knows.
const (
	ourAccount   = "agents"
	theirAccount = "theirs"
)

// memoryStore has the accounts of agents, or an error, and the last answers of the upstream Clouddriver.
type memoryStore struct {
	mu      sync.Mutex
	log     []vedette.AccountName // of changes
	rows    []registry.Account
	err     error
	answers map[string]lastanswers.Answer
}

// newMemoryStore returns a store with accounts that are complete.
func newMemoryStore(names ...vedette.AccountName) *memoryStore {
	m := &memoryStore{answers: map[string]lastanswers.Answer{}}
	for _, name := range names {
		m.set(name, registry.FirstSync{Settled: time.Unix(1, 0), Complete: time.Unix(1, 0)})
	}
	return m
}

// set registers or changes an account.
func (m *memoryStore) set(name vedette.AccountName, first registry.FirstSync) {
	m.remove(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, name)
	m.rows = append(m.rows, registry.Account{Account: vedette.Account{Name: name}, Term: 1, FirstSync: first})
}

func (m *memoryStore) remove(name vedette.AccountName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, name)
	m.rows = slices.DeleteFunc(slices.Clone(m.rows), func(a registry.Account) bool { return a.Name == name })
}

// fail makes reads return an error, or none, and an account be read again.
func (m *memoryStore) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, ourAccount)
	m.err = err
}

func (m *memoryStore) AccountsVersion() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uint64(len(m.log))
}

func (m *memoryStore) ChangedAccounts(since uint64) versions.AccountChanges {
	m.mu.Lock()
	defer m.mu.Unlock()
	return versions.AccountChanges{Names: slices.Clone(m.log[since:]), Mark: uint64(len(m.log))}
}

func (m *memoryStore) Accounts(context.Context) ([]registry.Account, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rows, m.err
}

func (m *memoryStore) AccountsNamed(_ context.Context, names ...vedette.AccountName) ([]registry.Account, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.rows), func(a registry.Account) bool { return !slices.Contains(names, a.Name) }), m.err
}

func (m *memoryStore) UpstreamAnswer(_ context.Context, name string) (lastanswers.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answers[name], m.err
}

func (m *memoryStore) SetUpstreamAnswer(_ context.Context, a lastanswers.Answer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers[a.Name] = a
	return m.err
}

func (m *memoryStore) ConfirmUpstreamAnswer(_ context.Context, name string, fetched time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.answers[name]
	a.Fetched = fetched
	m.answers[name] = a
	return m.err
}

// ourTask is the only task of this server.
const ourTask = "01JD8Q4S0V6K0G3H8B3R4T5Y6Z"

// isMissingTask reports whether a request is for a task that this server does not have.
func isMissingTask(r *http.Request) bool {
	_, id, isTask := strings.Cut(r.URL.Path, "/task/")
	return isTask && !strings.HasPrefix(id, ourTask)
}

// theirID is an agent, an operation and a server of the upstream Clouddriver.
const theirID = "their-id"

// isMissing reports whether a request is for something that this server does not have.
func isMissing(r *http.Request) bool {
	return isMissingTask(r) || strings.HasPrefix(r.URL.Path, "/armory/") && strings.Contains(r.URL.Path, theirID)
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
	if s.name == "own" && isMissing(r) {
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
	local    *side
	theirs   *side
	accounts *memoryStore
	remote   *Remote
	handler  *Handler
	url      string
}

// newWorld starts both. The upstream Clouddriver has a path before its API, as behind a gateway.
func newWorld(t testing.TB, change func(*Config)) *world {
	t.Helper()
	w := &world{local: &side{name: "own"}, theirs: &side{name: "theirs"}, accounts: newMemoryStore(ourAccount)}
	upstreamServer := httptest.NewServer(http.StripPrefix("/base", w.theirs))
	t.Cleanup(upstreamServer.Close)
	cfg := Config{BaseURL: upstreamServer.URL + "/base", HasProjects: true}
	if change != nil {
		change(&cfg)
	}
	remote, err := NewRemote(cfg, accountlist.NewCache(w.accounts), w.accounts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remote.client.transport.http.CloseIdleConnections)
	w.remote = remote
	w.handler = New(remote, w.local).(*Handler)
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

// join merges two documents as an endpoint does. A document that is nil stands for 404, and so does the result.
func join(t testing.TB, e Endpoint, local, theirs []byte) ([]byte, error) {
	t.Helper()
	accounts := newMemoryStore(ourAccount)
	ownAnswer := answerJSON(http.StatusOK, string(local))
	if local == nil {
		ownAnswer = answerJSON(http.StatusNotFound, notFoundBody)
	}
	remote, err := NewRemote(Config{BaseURL: "http://127.0.0.1:1"}, accountlist.NewCache(accounts), accounts)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	m, err := New(remote, ownAnswer).(*Handler).newMerge(t.Context(), w, httptest.NewRequest(http.MethodGet, "/", nil), route{Endpoint: e})
	if err != nil {
		t.Fatal(err)
	}
	defer m.grant.Release()
	localPart, err := m.readLocal()
	if err != nil {
		return nil, err
	}
	p := part{}
	if theirs != nil {
		p.document = bytes.NewReader(theirs)
	}
	send, err := e.joiner(m, localPart, p)
	if err != nil {
		return nil, err
	}
	if err := send(); vedette.KindOf(err) == vedette.NotFound || w.Code == http.StatusNotFound {
		return nil, nil
	} else if err != nil {
		t.Fatal(err)
	}
	return w.Body.Bytes(), nil
}

// endpoint returns an endpoint of the table.
func endpoint(t testing.TB, pattern string) Endpoint {
	t.Helper()
	for _, e := range Table() {
		if string(e.Pattern) == pattern {
			return e
		}
	}
	t.Fatalf("got no endpoint %q", pattern)
	return Endpoint{}
}

// secrets returns texts as a configuration has them.
func secrets(texts map[string]string) map[string]configfile.Secret {
	all := map[string]configfile.Secret{}
	for name, text := range texts {
		all[name] = configfile.NewSecret(text)
	}
	return all
}
