package configreload

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/admin"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/test/ports"
)

// sample is what a running program has in effect.
var sample = Effective{
	Status: Status{Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Files: []string{"/a.yml", "/b.yml"}, Error: "a.yml:1:1: why",
		PublicError: "not for operators", RejectedAccounts: []string{"dev"}},
	Name: "a1",
	Settings: []configfile.KeyValue{{Key: "port", Value: "1", From: "a.yml:1:1"}, {Key: "host", Value: "h1", From: configfile.FromDefault},
		{Key: "gone", Value: "x", From: "a.yml:2:1"}},
}

// endpointOf returns where a test server listens.
func endpointOf(t *testing.T, server *httptest.Server) Endpoint {
	t.Helper()
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return Endpoint{Port: port, TLS: u.Scheme == "https"}
}

// TestRemarksCompareFilesWithEffect compares files with what programs on this machine say.
func TestRemarksCompareFilesWithEffect(t *testing.T) {
	files := []configfile.KeyValue{{Key: "port", Value: "2", From: "a.yml:1:1"}, {Key: "host", Value: "h2", From: configfile.FromDefault},
		{Key: "new", Value: "y", From: "a.yml:3:1"}}
	want := []string{
		"running agent a1: the configuration is in effect since 2026-01-02T03:04:05Z, from /a.yml, /b.yml",
		"the running agent cannot use the files that it found: a.yml:1:1: why",
		"the running agent found invalid accounts, of which earlier ones stay in effect: dev",
		"not in effect: port = 2 (a.yml:1:1); 1 (a.yml:1:1) is",
		"not in effect: new = y (a.yml:3:1); there is no such setting in effect",
		"not in effect: gone = x (a.yml:2:1) is in effect and not in the files",
	}
	handler := Handler(admin.Guard{}, func() Effective { return sample })
	for name, start := range map[string]func(http.Handler) *httptest.Server{"http": httptest.NewServer, "https": httptest.NewTLSServer} {
		if got := Remarks(t.Context(), "agent", endpointOf(t, start(handler)), files); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	same := sample
	same.Status = Status{Since: sample.Since}
	if got := same.remarks("agent", sample.Settings); len(got) != 2 || !strings.Contains(got[1], "the files agree with what is in effect") {
		t.Errorf("got %q for the same settings", got)
	}
}

// TestMissingAnswersAreExplained checks what is said about programs that do not answer, or not as expected.
func TestMissingAnswersAreExplained(t *testing.T) {
	unused, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	answer := func(status int, body string) Endpoint {
		return endpointOf(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})))
	}
	for _, tt := range []struct {
		name     string
		endpoint Endpoint
		want     string
	}{
		{"nothing listens", Endpoint{Port: unused}, "connection refused"},
		{"a port that the system chose", Endpoint{}, "the port is 0"},
		{"an earlier version", answer(http.StatusNotFound, "404 page not found"), "answered 404 Not Found: 404 page not found"},
		{"another program", answer(http.StatusOK, "<html>"), "is it another program, or an earlier version?"},
		{"another program with JSON", answer(http.StatusOK, "{}"), "is it another program, or an earlier version?"},
		{"a redirect", answer(http.StatusFound, ""), "answered 302 Found: nothing"},
		{"control characters", answer(http.StatusForbidden, "\x1b[2J"), "answered 403 Forbidden:  [2J"},
		{"no address", Endpoint{Host: "not an address", Port: 1}, "ask http://not%20an%20address:1/config"},
	} {
		got := Remarks(t.Context(), "agent", tt.endpoint, nil)
		if len(got) != 1 || !strings.HasPrefix(got[0], "no running agent was found to compare with: ") || !strings.Contains(got[0], tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestTokenIsSentToOwnAddressesOnly checks that the token does not go to whoever listens on the loopback
// address, where none is needed.
func TestTokenIsSentToOwnAddressesOnly(t *testing.T) {
	for host, want := range map[string]bool{"": true, "0.0.0.0": true, "::": true, "127.0.0.1": true, "::1": true, "localhost": true, "10.0.0.7": false, "node-7": false} {
		if got := (Endpoint{Host: host}).isLoopback(); got != want {
			t.Errorf("%q: got %t, want %t", host, got, want)
		}
	}
	sent := "nothing"
	endpoint := endpointOf(t, httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = r.Header.Get("Authorization") })))
	endpoint.Guard.Token = token
	if _, err := Ask(t.Context(), endpoint); err == nil || sent != "" {
		t.Errorf("got %v, and sent %q", err, sent)
	}
}

const token = "a-token-of-20-letters"

// TestTokenOfAFile checks that the program trusts a request from another address of this machine.
func TestTokenOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	guard := admin.Guard{TokenFile: path}
	request := httptest.NewRequest(http.MethodGet, Path, nil)
	request.RemoteAddr = "10.0.0.7:4711"
	for _, loopback := range []bool{true, false} {
		if err := (Endpoint{Host: map[bool]string{true: "127.0.0.1", false: "10.0.0.7"}[loopback], Guard: guard}).authorize(request); (err == nil) != loopback {
			t.Errorf("without the file, loopback %t: got %v", loopback, err)
		}
	}
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		host string
		want bool
	}{{"127.0.0.1", false}, {"10.0.0.7", true}} {
		if err := (Endpoint{Host: tt.host, Guard: guard}).authorize(request); err != nil || guard.Trusts(request) != tt.want {
			t.Errorf("%s: got %v, trusted %t", tt.host, err, guard.Trusts(request))
		}
	}
}

// TestOnlyOperatorsSeeSettings checks that others do not see settings.
func TestOnlyOperatorsSeeSettings(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, Path, nil)
	r.RemoteAddr = "10.0.0.1:4711"
	w := httptest.NewRecorder()
	Handler(admin.Guard{Log: slog.New(slog.DiscardHandler)}, func() Effective { return sample }).ServeHTTP(w, r)
	if w.Code == http.StatusOK || strings.Contains(w.Body.String(), "a.yml") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
