package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/test/ports"
)

func config(url string) Config {
	return Config{ID: "s1", REST: "127.0.0.1:0", GRPC: "127.0.0.1:0", Store: sqldb.Config{URL: url}}
}

var discardLogger = slog.New(slog.DiscardHandler)

// startServer runs a server until the test ends, and returns a channel with the result of Run.
func startServer(t *testing.T, cfg Config) (*Server, <-chan error) {
	t.Helper()
	return startServerWithLog(t, cfg, discardLogger)
}

func startServerWithLog(t *testing.T, cfg Config, log *slog.Logger) (*Server, <-chan error) {
	t.Helper()
	s, err := Listen(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		done <- s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return s, done
}

// awaitHealth requests the health endpoint until the response matches, and returns it.
func awaitHealth(t *testing.T, s *Server, matches func(code int, body string) bool) {
	t.Helper()
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for last := ""; ; {
		resp, err := http.Get("http://" + s.REST().String() + "/health")
		if err == nil {
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			last = string(b)
			if matches(resp.StatusCode, last) {
				return
			}
		}
		if deadline.Err() != nil {
			t.Fatalf("health never matched; the last response was %s", last)
		}
	}
}

// TestUnreachableDatabaseIsReported checks that the server starts without a database, reports the
// reason, and does not return empty lists.
func TestUnreachableDatabaseIsReported(t *testing.T) {
	address := ports.Unused(t)
	s, _ := startServer(t, config("postgres://me:hidden@"+address+"/vedette?sslmode=disable"))
	awaitHealth(t, s, func(code int, body string) bool {
		if strings.Contains(body, "hidden") {
			t.Fatalf("health contains the password: %s", body)
		}
		return code == http.StatusServiceUnavailable && strings.Contains(body, "DOWN") && strings.Contains(body, address)
	})
	resp, err := http.Get("http://" + s.REST().String() + "/vedette/v1/accounts")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var response struct {
		Error struct{ Kind vedette.ErrorKind }
	}
	if err := json.NewDecoder(resp.Body).Decode(&response); err != nil || response.Error.Kind != vedette.Unavailable || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("accounts: got %s, %+v, %v", resp.Status, response, err)
	}
}

func TestInvalidDatabaseEndsServer(t *testing.T) {
	for _, url := range []string{"oracle://x", "sqlite:/proc/nowhere/v.db"} {
		_, done := startServer(t, config(url))
		select {
		case err := <-done:
			if vedette.KindOf(err) == "" || vedette.KindOf(err) == vedette.Unavailable {
				t.Errorf("%s: got %v, want a permanent error", url, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: the server retries a permanent error", url)
		}
	}
}

func TestHealthWhenServerIsReady(t *testing.T) {
	s, _ := startServer(t, config("sqlite:"+filepath.Join(t.TempDir(), "v.db")))
	awaitHealth(t, s, func(code int, body string) bool { return code == http.StatusOK && strings.Contains(body, `"UP"`) })
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := config("sqlite:" + filepath.Join(t.TempDir(), "v.db"))
	cfg.GRPC = l.Addr().String()
	_, err = Listen(cfg, discardLogger)
	const advice = ": stop the program that uses the port, or configure another one"
	if err == nil || !strings.Contains(err.Error(), "gRPC on "+cfg.GRPC) || !strings.HasSuffix(err.Error(), advice) {
		t.Errorf("got %v, want an error that names the port", err)
	}
	cfg.GRPC = "127.0.0.1:99999"
	if _, err = Listen(cfg, discardLogger); err == nil || !strings.Contains(err.Error(), "gRPC on 127.0.0.1:99999") || strings.Contains(err.Error(), advice) {
		t.Errorf("got %v, want an error about the number of the port", err)
	}
}

// TestFiatGovernsBothAPIs checks that Fiat's permissions apply to both APIs.
func TestFiatGovernsBothAPIs(t *testing.T) {
	fiat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/authorize/admin" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"name":"admin","admin":true}`)
	}))
	defer fiat.Close()
	cfg := config("sqlite:" + filepath.Join(t.TempDir(), "v.db"))
	cfg.Fiat = &authorize.FiatConfig{BaseURL: fiat.URL}
	s, _ := startServer(t, cfg)
	awaitHealth(t, s, func(code int, _ string) bool { return code == http.StatusOK })
	for _, tt := range []struct {
		user, path string
		status     int
	}{
		{"admin", "/manifests/prod/shop/pod%20x", 404},
		{"dev", "/manifests/prod/shop/pod%20x", 403},
		{"", "/manifests/prod/shop/pod%20x", 403},
		{"admin", "/vedette/v1/objects", 200},
		{"dev", "/vedette/v1/objects", 403},
		{"dev", "/vedette/v1/accounts", 200},
		{"dev", "/credentials", 200},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.REST().String()+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-SPINNAKER-USER", tt.user)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != tt.status {
			t.Errorf("%s by %q: got %d, want %d", tt.path, tt.user, response.StatusCode, tt.status)
		}
	}
}

// TestUnreachableFiatIsSaid checks that callers learn that their permissions cannot be looked up now, which is not a refusal.
func TestUnreachableFiatIsSaid(t *testing.T) {
	fiat := ports.Unused(t)
	cfg := config("sqlite:" + filepath.Join(t.TempDir(), "v.db"))
	cfg.Fiat = &authorize.FiatConfig{BaseURL: "http://" + fiat, Retry: authorize.FiatRetry{MaxElapsed: time.Millisecond}}
	s, _ := startServer(t, cfg)
	awaitHealth(t, s, func(code int, _ string) bool { return code == http.StatusOK })
	for _, path := range []string{"/manifests/prod/shop/pod%20x", "/applications", "/search?q=web&type=pods", "/vedette/v1/objects", "/vedette/v1/operations"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.REST().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-SPINNAKER-USER", "ann")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		const want = "the permissions of ann cannot be looked up now, because Fiat does not answer as it should: try again"
		if err != nil || response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), want) || strings.Contains(string(body), fiat) {
			t.Errorf("%s: got %d %s, %v, want 503 and %q", path, response.StatusCode, body, err, want)
		}
	}
}

// TestOperationsAreValidated submits an operation to a real server, to check that the path exists
// and that the accounts come from the database.
func TestOperationsAreValidated(t *testing.T) {
	s, _ := startServer(t, config("sqlite:"+filepath.Join(t.TempDir(), "vedette.db")))
	awaitHealth(t, s, func(code int, _ string) bool { return code == http.StatusOK })
	body := strings.NewReader(`[{"scaleManifest":{"account":"nowhere","manifestName":"deployment web","location":"shop","replicas":3}}]`)
	resp, err := http.Post("http://"+s.REST().String()+"/kubernetes/ops", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	response, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(response), "credentials not found (name: nowhere)") {
		t.Errorf("%d %s, %v", resp.StatusCode, response, err)
	}
}

// safeBuffer is a buffer that several goroutines write to.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestLinesOfRequestsAreThrottled sends tasks without operations, which nobody needs a permission for.
func TestLinesOfRequestsAreThrottled(t *testing.T) {
	var lines safeBuffer
	s, _ := startServerWithLog(t, config("sqlite:"+filepath.Join(t.TempDir(), "v.db")), slog.New(slog.NewTextHandler(&lines, nil)))
	awaitHealth(t, s, func(code int, _ string) bool { return code == http.StatusOK })
	const requests = 100
	for range requests {
		response, err := http.Post("http://"+s.REST().String()+"/kubernetes/ops", "application/json", strings.NewReader("[]"))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("got %d, want 200", response.StatusCode)
		}
	}
	if n := strings.Count(lines.String(), "task started"); n == 0 || n >= requests/2 {
		t.Errorf("%d requests caused %d lines, want at least one and few", requests, n)
	}
}
