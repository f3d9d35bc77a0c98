// Package sharing runs servers that share a database as processes, for tests.
package sharing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/process"
)

// Options configures a server.
type Options struct {
	ID       string
	Dir      string // for the configuration, the log and the data
	Programs string // directory of vedette-server
	URL      string // of the database
	// Advertise returns the address at which other servers reach this one, given the one on which it listens; nil for that.
	Advertise func(peers string) string
	Config    string                 // lines that are added to the configuration
	Env       func(start int) string // as process.Program has it
}

// Server is a server that runs as a process.
type Server struct {
	*process.Program
	REST, GRPC string // addresses
	client     *http.Client
}

// NewServer returns a server that is not started yet. It ends with the test, which shows its log if it fails.
func NewServer(t testing.TB, o Options) *Server {
	t.Helper()
	rest, grpc := reserve(t), reserve(t)
	peers := reserve(t)
	advertised := peers.address()
	if o.Advertise != nil {
		advertised = o.Advertise(advertised)
	}
	config := filepath.Join(o.Dir, o.ID+".yml")
	text := fmt.Sprintf(`dataDir: %s
server: {id: %s, port: %d, address: 127.0.0.1, peers: {port: %d, address: 127.0.0.1, advertise: %q}}
grpc.server: {port: %d, address: 127.0.0.1}
sql.url: %q
kubesvc.cluster: database
%s`, filepath.Join(o.Dir, o.ID), o.ID, rest, peers, advertised, grpc, o.URL, o.Config)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &Server{
		Program: &process.Program{T: t, Name: o.ID, Path: filepath.Join(o.Programs, "vedette-server"), Args: []string{"--config", config},
			Log: filepath.Join(o.Dir, o.ID+".log"), Env: o.Env},
		REST: rest.address(), GRPC: grpc.address(),
		client: &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

type port int

func (p port) address() string { return fmt.Sprintf("127.0.0.1:%d", int(p)) }

func reserve(t testing.TB) port {
	t.Helper()
	n, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	return port(n)
}

// Answer is an answer to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request with a body of JSON, or without one if body is nil. An error means that there is no whole answer.
func (s *Server) Do(ctx context.Context, method, path string, body any) (Answer, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return Answer{}, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.REST+path, bytes.NewReader(text))
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, answer}, err
}

// Request sends a request, decodes the answer unless into is nil, and returns the status; 0 if there is no whole answer.
func (s *Server) Request(ctx context.Context, method, path string, body, into any) int {
	answer, err := s.Do(ctx, method, path, body)
	if err != nil || into != nil && json.Unmarshal(answer.Body, into) != nil {
		return 0
	}
	return answer.Status
}

// IsReady reports whether the server answers.
func (s *Server) IsReady(ctx context.Context) bool {
	return s.Request(ctx, http.MethodGet, "/vedette/v1/accounts", nil, nil) == http.StatusOK
}
