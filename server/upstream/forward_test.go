package upstream

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
)

// TestForwardKeepsHeaders checks both directions of a request that is passed on.
func TestForwardKeepsHeaders(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Username, c.Password = "vedette", configfile.NewSecret("s3cret")
		c.Headers = secrets(map[string]string{"X-Gateway-Token": "t"})
	})
	w.theirs.answer = func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Add("X-Many", "a")
		rw.Header().Add("X-Many", "b")
		rw.Header().Set("Keep-Alive", "timeout=5")
		rw.Header().Set("ETag", `"1"`)
		rw.WriteHeader(http.StatusAccepted)
	}
	response, _ := w.send(t, http.MethodPut, "/admin/db/truncate/ns?x=%20y&x=2;z", "body", "Authorization", "Bearer caller", "Connection", "X-Private, Upgrade",
		"X-Private", "1", "Upgrade", "websocket", "Accept-Encoding", "gzip", "If-None-Match", `"0"`, "X-SPINNAKER-REQUEST-ID", "r-1", "X-Gateway-Token", "caller's",
		"Proxy-Authorization", "Basic x")
	if got := response.Header; response.StatusCode != http.StatusAccepted || strings.Join(got["X-Many"], ",") != "a,b" || got.Get("Keep-Alive") != "" || got.Get("ETag") != `"1"` {
		t.Errorf("the caller got %d %v", response.StatusCode, got)
	}
	seen := w.theirs.requests()[0]
	for name, want := range map[string]string{"X-Spinnaker-Request-Id": "r-1", "X-Spinnaker-User": "ann@example.com", "Accept-Encoding": "gzip", "If-None-Match": `"0"`,
		"X-Gateway-Token": "t", "X-Private": "", "Upgrade": "", "Proxy-Authorization": "", "Connection": "", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "Test-Body": "body"} {
		if got := seen.Header.Get(name); got != want {
			t.Errorf("the header %s: got %q, want %q", name, got, want)
		}
	}
	if user, password, _ := seen.BasicAuth(); user != "vedette" || password != "s3cret" {
		t.Errorf("got the user %q, want the configured one", user)
	}
	if seen.URL.RawQuery != "x=%20y&x=2%3Bz" || !strings.HasPrefix(w.handler.client.BaseURL, "http://"+seen.Host+"/") {
		t.Errorf("got the query %s at the host %s", seen.URL.RawQuery, seen.Host)
	}
}

// TestCallersAuthorizationIsPassedOn checks the default.
func TestCallersAuthorizationIsPassedOn(t *testing.T) {
	w := newWorld(t, nil)
	w.answers(`[]`, `[]`)
	for _, path := range []string{"/subnets", "/credentials"} {
		w.send(t, http.MethodGet, path, "", "Authorization", "Bearer caller")
		if got := w.theirs.requests()[0].Header.Get("Authorization"); got != "Bearer caller" {
			t.Errorf("%s: got %q, want the caller's", path, got)
		}
	}
}

// TestBodiesStreamBothWays checks that the parts of both bodies arrive before the whole.
func TestBodiesStreamBothWays(t *testing.T) {
	received, released := make(chan string), make(chan struct{})
	upstreamServer := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body := bufio.NewReader(r.Body)
		line, _ := body.ReadString('\n')
		received <- line
		_, _ = io.Copy(io.Discard, body)
		_, _ = io.WriteString(rw, "one\n")
		_ = http.NewResponseController(rw).Flush()
		<-released
		_, _ = io.WriteString(rw, "two\n")
	}))
	t.Cleanup(upstreamServer.Close)
	w := newWorld(t, nil)
	w.setBase(t, upstreamServer.URL)
	requestBody, write := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/aws/ops", requestBody)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.WriteString(write, "first\n")
		if line := <-received; line != "first\n" {
			t.Errorf("got %q before the request was complete, want the first line", line)
		}
		_ = write.Close()
	}()
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer := bufio.NewReader(response.Body)
	if got, err := answer.ReadString('\n'); got != "one\n" || err != nil {
		t.Errorf("got %q %v before the answer was complete, want its first line", got, err)
	}
	close(released)
	if got, err := answer.ReadString('\n'); got != "two\n" || err != nil {
		t.Errorf("got %q %v, want the rest", got, err)
	}
}

// setBase changes the address of the upstream Clouddriver.
func (w *world) setBase(t *testing.T, address string) {
	t.Helper()
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	w.handler.client.base = base
}

// TestLoopsAreRecognized points a server to itself, directly and through a second server.
func TestLoopsAreRecognized(t *testing.T) {
	for _, name := range []string{"itself", "another server that leads back"} {
		t.Run(name, func(t *testing.T) {
			a, b := newWorld(t, nil), newWorld(t, nil)
			if name == "itself" {
				a.setBase(t, a.url)
			} else {
				a.setBase(t, b.url)
				b.setBase(t, a.url)
			}
			for _, s := range []*side{a.local, b.local} {
				s.answer = answerJSON(http.StatusOK, `[{"name":"agents"}]`)
			}
			response, body := a.send(t, http.MethodGet, "/subnets", "")
			if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "leads back to the server itself") {
				t.Errorf("got %d %s, want the reason", response.StatusCode, body)
			}
			response, body = a.send(t, http.MethodGet, "/credentials", "")
			checkUnavailable(t, response, body, map[string]string{"itself": reasonLoop, "another server that leads back": "status-503"}[name])
		})
	}
}

// TestViaHeaderDetectsLoops checks the header that detects loops.
func TestViaHeaderDetectsLoops(t *testing.T) {
	guard := newLoopGuard()
	for _, tt := range []struct {
		name   string
		via    []string
		isLoop bool
	}{
		{"no proxy", nil, false},
		{"other proxies", []string{"1.1 nginx, 1.0 fred (Apache/1.1)", "garbage", ""}, false},
		{"another of our servers", []string{"1.1 vedette-a"}, false},
		{"this server", []string{"1.1 nginx", "1.1 vedette-a, 1.1 " + guard.name}, true},
		{"many of our servers", []string{"1.1 vedette-a, 1.1 vedette-b, 1.1 vedette-c"}, true},
	} {
		if err := guard.check(http.Header{viaHeader: tt.via}); (err != nil) != tt.isLoop {
			t.Errorf("%s: got %v, want a loop: %t", tt.name, err, tt.isLoop)
		}
	}
}

// TestRejectedRequestsStayHere checks requests that must not reach the upstream Clouddriver.
func TestRejectedRequestsStayHere(t *testing.T) {
	w := newWorld(t, nil)
	for _, tt := range []struct {
		name, method, path string
		headers            []string
		code               int
	}{
		{"a web page of another site", "POST", "/kubernetes/ops", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"dots with a parameter of the path", "GET", "/aws/..;/..;x=y/admin", nil, 400},
		{"escaped dots with a parameter of the path", "GET", "/aws/%2e%2e%3b/admin", nil, 400},
		{"a web page of another site, passed on", "POST", "/aws/ops", []string{"Origin", "https://evil.example"}, 403},
		{"dot segments", "GET", "/subnets/../../admin", nil, 400},
		{"a dot segment", "GET", "/subnets/./x", nil, 400},
		{"escaped dot segments", "GET", "/%2e%2e/admin", nil, 400},
		{"escaped slashes with dot segments", "GET", "/..%2fadmin", nil, 400},
		{"backslashes with dot segments", "GET", "/..%5cadmin", nil, 400},
		{"dot segments of a merged path", "GET", "/applications/../clusters", nil, 400},
		{"TRACE", "TRACE", "/subnets", nil, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response, body := w.send(t, tt.method, tt.path, "", tt.headers...)
			if seen := w.theirs.requests(); response.StatusCode != tt.code || len(seen) != 0 {
				t.Errorf("got %d %s and %d requests upstream, want %d and none", response.StatusCode, body, len(seen), tt.code)
			}
		})
	}
}

// TestUpstreamHealthChangesNothingElse checks that the state of the upstream Clouddriver is shown and changes nothing else.
func TestUpstreamHealthChangesNothingElse(t *testing.T) {
	w := newWorld(t, nil)
	status := func(code int) (string, healthDetails) {
		t.Helper()
		w.local.answer = answerJSON(code, `{"status":"X","components":{"db":{"status":"Y"}}}`)
		response, body := w.send(t, http.MethodGet, "/health", "")
		var view struct {
			Status     string
			Components map[string]struct {
				Status  string
				Details healthDetails
			}
		}
		if err := json.Unmarshal([]byte(body), &view); err != nil || response.StatusCode != code || view.Status != "X" || view.Components["db"].Status != "Y" {
			t.Fatalf("got %d %s %v, want what this server answers", response.StatusCode, body, err)
		}
		return view.Components["upstream"].Status, view.Components["upstream"].Details
	}
	if got, _ := status(http.StatusOK); got != "UNKNOWN" {
		t.Errorf("before the first request: got %s, want UNKNOWN", got)
	}
	w.send(t, http.MethodGet, "/subnets", "")
	if got, s := status(http.StatusOK); got != "UP" || s.Requests != 1 || s.Failures != 0 {
		t.Errorf("after a request: got %s %+v, want UP", got, s)
	}
	w.theirs.answer = answerJSON(http.StatusBadGateway, "")
	w.send(t, http.MethodGet, "/subnets", "")
	if got, s := status(http.StatusServiceUnavailable); got != "DOWN" || s.Requests != 2 || s.Failures != 1 || s.LastError != "status-502" {
		t.Errorf("after a failure: got %s %+v, want DOWN", got, s)
	}
	w.theirs.answer = nil
	w.send(t, http.MethodGet, "/subnets", "")
	if got, _ := status(http.StatusOK); got != "UP" {
		t.Errorf("after a success: got %s, want UP", got)
	}
	w.local.answer = answerJSON(http.StatusMethodNotAllowed, "other")
	if response, body := w.send(t, http.MethodPost, "/health", ""); response.StatusCode != http.StatusMethodNotAllowed || body != "other" {
		t.Errorf("POST: got %d %s, want what this server answers", response.StatusCode, body)
	}
}

// TestImpossibleConfigurationsAreRejected checks configurations that cannot work.
func TestImpossibleConfigurationsAreRejected(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		want string // part of the error; empty for a valid configuration
	}{
		{"only a URL", Config{BaseURL: "http://spin-clouddriver:7002"}, ""},
		{"a URL with a path", Config{BaseURL: "https://gateway/clouddriver/"}, ""},
		{"no scheme", Config{BaseURL: "spin-clouddriver:7002"}, "must be a URL"},
		{"another scheme", Config{BaseURL: "ftp://spin-clouddriver"}, "must be a URL"},
		{"a user in the URL", Config{BaseURL: "http://u:p@spin-clouddriver"}, "must not have a user"},
		{"a query", Config{BaseURL: "http://spin-clouddriver?x=1"}, "must not have a query"},
		{"a password without a user", Config{BaseURL: "http://a", Password: configfile.NewSecret("p")}, "no user"},
		{"a negative time", Config{BaseURL: "http://a", Timeout: -1}, "negative"},
		{"a header with a line break", Config{BaseURL: "http://a", Headers: secrets(map[string]string{"X": "a\r\nY: b"})}, "not a valid HTTP header"},
		{"a header name with a space", Config{BaseURL: "http://a", Headers: secrets(map[string]string{"X Y": "a"})}, "not a valid HTTP header"},
		{"a header of the connection", Config{BaseURL: "http://a", Headers: secrets(map[string]string{"connection": "close"})}, "the server sets it"},
		{"headers", Config{BaseURL: "http://a", Headers: secrets(map[string]string{"X-Token": "a b\tc"})}, ""},
	} {
		err := tt.cfg.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	several := Config{BaseURL: "http://a", Headers: secrets(map[string]string{"Via": "z", "Host": "b", "X Y": "c", "Connection": "close"})}
	for range 100 { // the same error each time
		if err := several.Validate(); err == nil || !strings.Contains(err.Error(), `"Connection"`) {
			t.Fatalf("got %v, want an error about the first header by name", err)
		}
	}
}

// TestScaleAgentPathsArePassedOn checks that a path of the Scale Agent is passed on, and explained if the other Clouddriver does
// not have it, either.
func TestScaleAgentPathsArePassedOn(t *testing.T) {
	w := newWorld(t, nil)
	w.theirs.answer = func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Encoding", "identity")
		if r.URL.Path == "/armory/agent/other" {
			_, _ = io.WriteString(rw, "theirs")
			return
		}
		rw.Header().Set("Content-Type", "text/html")
		rw.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(rw, "<html>not here</html>")
	}
	for path, want := range map[string]string{
		"/armory/agent/other":                    "200 theirs",
		"/armory/clouddrivers/sql/pool/settings": "404 {",
		"/other":                                 "404 <html>not here</html>",
	} {
		response, body := w.send(t, http.MethodGet, path, "")
		got := strconv.Itoa(response.StatusCode) + " " + body
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
		if path == "/armory/clouddrivers/sql/pool/settings" && (!strings.Contains(body, "No handler found for GET /armory/clouddrivers/sql/pool/settings: the server chooses the number") ||
			!json.Valid([]byte(body)) || response.Header.Get("Content-Type") != "application/json" || response.Header.Get("Content-Encoding") != "") {
			t.Errorf("%s: got %v %s", path, response.Header, body)
		}
	}
}
