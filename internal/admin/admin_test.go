package admin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const token = "a-token-of-20-letters"

// TestOnlyOperatorsPassTheGuard checks who may use endpoints for operators.
func TestOnlyOperatorsPassTheGuard(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	withFile := Guard{TokenFile: write("token", token+"\n")}
	verified := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{}}}}
	const elsewhere = "10.0.0.1:4711"
	for _, tt := range []struct {
		name                string
		guard               Guard
		from, host, headers string
		tls                 *tls.ConnectionState
		want                bool
	}{
		{"another machine", Guard{}, elsewhere, "10.0.0.2:8082", "", nil, false},
		{"this machine", Guard{}, "127.0.0.1:4711", "127.0.0.1:8082", "", nil, true},
		{"this machine by name", Guard{}, "[::1]:4711", "LocalHost:8082", "", nil, true},
		{"this machine over IPv6", Guard{}, "[::1]:4711", "[::1]", "", nil, true},
		{"a page in this machine's browser", Guard{}, "127.0.0.1:4711", "evil.example:8082", "", nil, false},
		{"a verified certificate", Guard{}, elsewhere, "agent:8082", "", verified, true},
		{"the certificate of a reader", Guard{IgnoreCertificates: true}, elsewhere, "server:7002", "", verified, false},
		{"an unverified certificate", Guard{}, elsewhere, "agent:8082", "", &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}, false},
		{"the token", Guard{Token: token}, elsewhere, "agent:8082", "Bearer " + token, nil, true},
		{"the token of a file", withFile, elsewhere, "agent:8082", "bearer " + token, nil, true},
		{"another token", Guard{Token: token}, elsewhere, "agent:8082", "Bearer " + token + "x", nil, false},
		{"the token as a password", Guard{Token: token}, elsewhere, "agent:8082", "Basic " + token, nil, false},
		{"an empty token", Guard{Token: token}, elsewhere, "agent:8082", "Bearer ", nil, false},
		{"an empty token without a token", Guard{}, elsewhere, "agent:8082", "Bearer ", nil, false},
		{"an empty file", Guard{TokenFile: write("empty", "\n")}, elsewhere, "agent:8082", "Bearer ", nil, false},
		{"a missing file", Guard{TokenFile: filepath.Join(dir, "absent")}, elsewhere, "agent:8082", "Bearer ", nil, false},
		{"a large file", Guard{TokenFile: write("large", strings.Repeat("x", 1<<20))}, elsewhere, "agent:8082", "Bearer " + strings.Repeat("x", 1<<20), nil, false},
		{"no address", Guard{}, "", "localhost", "", nil, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/accounts", nil)
		r.RemoteAddr, r.Host, r.TLS = tt.from, tt.host, tt.tls
		if tt.headers != "" {
			r.Header.Set("Authorization", tt.headers)
		}
		w := httptest.NewRecorder()
		tt.guard.Require(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret") })).ServeHTTP(w, r)
		if got := w.Code == http.StatusOK; got != tt.want || strings.Contains(w.Body.String(), "secret") != tt.want {
			t.Errorf("%s: got %d %s, want %v", tt.name, w.Code, w.Body, tt.want)
		}
		if !tt.want && (w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" || strings.Contains(w.Body.String(), token)) {
			t.Errorf("%s: got %d %v %s, want 401 with a challenge", tt.name, w.Code, w.Header(), w.Body)
		}
	}
}

// TestForwardedRequestsAreNotLocal checks that requests that others send through this machine are not
// taken for its own.
func TestForwardedRequestsAreNotLocal(t *testing.T) {
	for _, tt := range []struct {
		name, from, header, value string
		want                      bool
	}{
		{"a program", "127.0.0.1:4711", "User-Agent", "curl/8", true},
		{"a program over mapped IPv6", "[::ffff:127.0.0.1]:4711", "User-Agent", "curl/8", true},
		{"a user in the address bar", "127.0.0.1:4711", "Sec-Fetch-Site", "none", true},
		{"a page of the same port", "127.0.0.1:4711", "Origin", "http://localhost:8082", true},
		{"a page of another site", "127.0.0.1:4711", "Sec-Fetch-Site", "cross-site", false},
		{"a page of another port", "127.0.0.1:4711", "Sec-Fetch-Site", "same-site", false},
		{"a page of another site, in an older browser", "127.0.0.1:4711", "Origin", "https://evil.example", false},
		{"a page without an origin", "127.0.0.1:4711", "Origin", "null", false},
		{"a page with a broken origin", "127.0.0.1:4711", "Origin", "http://[", false},
		{"a mesh's proxy", "127.0.0.6:4711", "User-Agent", "curl/8", false},
		{"a proxy", "127.0.0.1:4711", "X-Forwarded-For", "10.0.0.1", false},
		{"a proxy that says it comes from here", "127.0.0.1:4711", "X-Forwarded-For", "127.0.0.1", false},
		{"a proxy of RFC 7239", "127.0.0.1:4711", "Forwarded", "for=10.0.0.1", false},
		{"a proxy without an address", "[::1]:4711", "X-Real-Ip", "", false},
		{"a proxy's name", "[::1]:4711", "Via", "1.1 proxy", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/accounts", nil)
		r.RemoteAddr, r.Host = tt.from, "localhost:8082"
		r.Header.Set(tt.header, tt.value)
		if got := (Guard{Token: token}).Trusts(r); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		if !(Guard{Token: token}).Trusts(r) {
			t.Errorf("%s: not trusted with the token", tt.name)
		}
	}
}

// TestTokenFileIsReadAgain rotates a token.
func TestTokenFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	g := Guard{TokenFile: path}
	for _, current := range []string{token, "another-" + token} {
		if err := os.WriteFile(path, []byte(current), 0o600); err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+current)
		if !g.Trusts(r) {
			t.Errorf("%s is not trusted", current)
		}
	}
}

func TestGuardNeedsOneLongToken(t *testing.T) {
	for _, tt := range []struct {
		guard Guard
		want  string
	}{
		{Guard{}, ""}, {Guard{Token: token}, ""}, {Guard{TokenFile: "/a"}, ""},
		{Guard{Token: token, TokenFile: "/a"}, "remove one"}, {Guard{Token: "short"}, "at least 16"},
	} {
		if err := tt.guard.Check(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.guard, err, tt.want)
		}
	}
}

func TestListsAreFilteredAndPaged(t *testing.T) {
	items := []string{"a", "b", "c"}
	for _, tt := range []struct {
		query string
		want  []string
		err   string
	}{
		{"", items, ""},
		{"limit=2", []string{"a", "b"}, ""},
		{"limit=2&offset=2", []string{"c"}, ""},
		{"offset=9223372036854775807", []string{}, ""},
		{"limit=0", items, ""},
		{"limit=-1", nil, "must be a number from 0"},
		{"offset=99999999999999999999", nil, "must be a number from 0"},
		{"limit=1&limit=2", nil, "is set 2 times"},
		{"nmae=a", nil, `there is no parameter "nmae": use name, limit or offset`},
	} {
		values, err := url.ParseQuery(tt.query)
		if err != nil {
			t.Fatal(err)
		}
		q, err := ParseQuery(values, "name")
		if err != nil || tt.err != "" {
			if err == nil || tt.err == "" || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got %v, want error %q", tt.query, err, tt.err)
			}
			continue
		}
		w := httptest.NewRecorder()
		WriteList(w, q, items)
		var got []string
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got == nil || !slices.Equal(got, tt.want) || w.Header().Get(TotalHeader) != "3" {
			t.Errorf("%s: got %s of %s, want %q", tt.query, w.Body, w.Header().Get(TotalHeader), tt.want)
		}
	}
	several := url.Values{"zebra": {"1"}, "limit": {"x"}, "ape": {"1"}}
	for range 100 { // the same error each time
		if _, err := ParseQuery(several, "name"); err == nil || !strings.Contains(err.Error(), `"ape"`) {
			t.Fatalf("%s: got %v, want an error about the first parameter by name", several.Encode(), err)
		}
	}
	q, err := ParseQuery(url.Values{"name": {"A"}}, "name")
	if err != nil || !q.Matches("name", "a") || q.Matches("name", "b") || !q.Matches("other", "b") || q.Filter("name") != "A" {
		t.Errorf("got %+v, %v", q, err)
	}
}

// TestProfilesArePrivateWithoutToken serves profiles on a port of their own, which only this machine reaches without a
// token.
func TestProfilesArePrivateWithoutToken(t *testing.T) {
	for host, want := range map[string]string{"": "127.0.0.1:6060", "0.0.0.0": "127.0.0.1:6060"} {
		if got := (Profiles{Host: host, Port: 6060}).Address(); got != want {
			t.Errorf("without a token: got %s, want %s", got, want)
		}
	}
	if got := (Profiles{Port: 6060, Guard: Guard{TokenFile: "/token"}}).Address(); got != ":6060" {
		t.Errorf("with a token: got %s, want all addresses", got)
	}
	p := Profiles{}
	listener, err := p.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx, listener, slog.New(slog.DiscardHandler)) }()
	for path, want := range map[string]int{"": 200, "heap": 200, "goroutine?debug=1": 200, "symbol": 200, "profile?seconds=1": 200, "cmdline": 404, "nothing": 404} {
		response, err := http.Get("http://" + listener.Addr().String() + "/debug/pprof/" + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != want || err != nil || len(body) == 0 {
			t.Errorf("%q: got status %d with %d bytes, %v, want status %d", path, response.StatusCode, len(body), err, want)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
