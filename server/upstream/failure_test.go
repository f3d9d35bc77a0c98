package upstream

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/upstream/merging"
	"github.com/vedette-io/vedette/test/ports"
)

// rawAnswer returns a handler that writes bytes to the connection and closes it.
func rawAnswer(raw string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, raw)
		_ = conn.Close()
	}
}

// endless writes a JSON list until the client leaves.
func endless(w http.ResponseWriter, _ *http.Request) {
	_, err := io.WriteString(w, "[")
	block := strings.Repeat(`{"account":"theirs","name":"x"},`, 1000)
	for err == nil {
		_, err = io.WriteString(w, block)
	}
}

// hang answers nothing until the client leaves.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// beginThenHang begins an answer.
func beginThenHang(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, `[{"account":"theirs","name":"x"},`)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// bomb answers with a small body that is large after decompression.
func bomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	defer z.Close()
	spaces := []byte(strings.Repeat(" ", 1<<20))
	for range 64 {
		if _, err := z.Write(spaces); err != nil {
			return
		}
	}
}

// badUpstreams are the ways in which an upstream Clouddriver can fail.
var badUpstreams = []struct {
	name   string
	answer http.HandlerFunc
	reason string
}{
	{"it does not answer", hang, "timeout"},
	{"it stops in the middle", beginThenHang, "timeout"},
	{"it closes the connection", rawAnswer(""), "unreachable"},
	{"it does not speak HTTP", rawAnswer("SSH-2.0-OpenSSH_9.9\r\n"), "unreachable"},
	{"its header is broken", rawAnswer("HTTP/1.1 200 OK\r\nX\x00Y: z\r\n\r\n[]"), "unreachable"},
	{"its header is endless", rawAnswer("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxHeaderBytes) + "\r\n\r\n[]"), "unreachable"},
	{"half an answer, by its length", rawAnswer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[{\"account\":"), "cut-off"},
	{"half an answer, by its chunks", rawAnswer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[{\"a\"\r\n"), "cut-off"},
	{"half a JSON document", answerJSON(http.StatusOK, `[{"account":"theirs"},{"acc`), "invalid-answer"},
	{"an error of its gateway", answerJSON(http.StatusBadGateway, `<html>`), "status-502"},
	{"a page instead of JSON", answerJSON(http.StatusOK, `<html><body>Sign in</body></html>`), "invalid-answer"},
	{"an empty answer", answerJSON(http.StatusOK, ``), "invalid-answer"},
	{"another kind of JSON", answerJSON(http.StatusOK, `{"results":[]}`), "invalid-answer"},
	{"null", answerJSON(http.StatusOK, `null`), "invalid-answer"},
	{"elements of another kind", answerJSON(http.StatusOK, `["theirs",1]`), "invalid-answer"},
	{"two documents", answerJSON(http.StatusOK, `[] []`), "invalid-answer"},
	{"bytes that are not UTF-8", answerJSON(http.StatusOK, "[{\"account\":\"\xff\"}]"), "invalid-answer"},
	{"deep nesting", answerJSON(http.StatusOK, strings.Repeat("[", 100_000)), "invalid-answer"},
	{"10 GB", endless, "too-large"},
	{"a compressed bomb", bomb, "too-large"},
	{"a redirect to a page", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "status-302"},
	{"it denies access", answerJSON(http.StatusForbidden, `{}`), "status-403"},
	{"it is incomplete itself", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(incompleteHeader, "upstream; reason=timeout")
		answerJSON(http.StatusOK, `[]`)(w, r)
	}, "incomplete"},
}

const smallMemory = 6 << 20 // an answer may have a third of the half of it

// newWorldFor returns a world with little memory. Its times are short only for an upstream
// Clouddriver that hangs, so that a busy machine does not change the reason of a failure. The time
// to write an answer to the caller is long for all.
func newWorldFor(t *testing.T, reason string) *world {
	w := newWorld(t, func(c *Config) {
		c.MergeBytes, c.MergeTimeout, c.Timeout = smallMemory, time.Minute, time.Minute
		if reason == reasonTimeout {
			c.MergeTimeout = hangTimeout
		}
	})
	if reason == reasonTimeout {
		w.handler.client.transport.http.ResponseHeaderTimeout = hangTimeout
		w.handler.client.Timeout = time.Second // requests for nobody end before the test
	}
	return w
}

// hangTimeout is after how long an upstream Clouddriver hangs that does so for ever.
const hangTimeout = 50 * time.Millisecond

// TestMergeWithABadUpstream checks that an answer is not half of one, and that agents' accounts are not affected.
func TestMergeWithABadUpstream(t *testing.T) {
	for _, tt := range badUpstreams {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorldFor(t, tt.reason)
			w.local.answer, w.theirs.answer = answerJSON(http.StatusOK, `[{"account":"agents","name":"agents"}]`), tt.answer
			for _, path := range []string{"/applications/web/serverGroups", "/credentials"} {
				response, body := w.send(t, http.MethodGet, path, "")
				if tt.reason == "status-403" && response.StatusCode == http.StatusForbidden {
					continue // the caller learns why
				}
				checkUnavailable(t, response, body, tt.reason)
			}
			if _, body := w.send(t, http.MethodGet, "/manifests/agents/shop/pod%20a", ""); !strings.Contains(body, "agents") {
				t.Errorf("an account of an agent: got %s, want its answer", body)
			}
			if used := w.handler.client.memory.Used(); used != 0 {
				t.Errorf("got %d bytes used after the requests, want 0", used)
			}
		})
	}
}

// TestVeryManyElements checks the limit for answers whose elements cost more memory than bytes.
func TestVeryManyElements(t *testing.T) {
	list := `[{}` + strings.Repeat(`,{}`, merging.MaxElements) + `]`
	application := `{"name":"a","clusterNames":{"x":0` + strings.Repeat(`,"x":0`, merging.MaxElements) + `}}`
	for _, tt := range []struct {
		name, theirs, pattern string
	}{
		{"artifact accounts", list, "artifacts/credentials"},
		{"stages", list, "features/stages"},
		{"a project", list, "projects/{project}/clusters"},
		{"an application", application, "applications/{app}"},
		{"applications", "[" + application + "]", "applications"},
		{"search results", `[{"results":[0` + strings.Repeat(`,0`, merging.MaxElements) + `]}]`, "search"},
	} {
		if err := endpoint(t, tt.pattern).merge(&merging.Merge{Ours: &accountSet{}, Theirs: []byte(tt.theirs)}); err == nil || !strings.Contains(err.Error(), "elements") {
			t.Errorf("%s: got %v, want an error for more than %d elements", tt.name, err, merging.MaxElements)
		}
	}
}

// TestNotFoundNeedsBothSides checks that an application is not reported as missing while the
// upstream Clouddriver may know it, because Orca would delete it.
func TestNotFoundNeedsBothSides(t *testing.T) {
	for _, tt := range badUpstreams {
		if tt.reason == "too-large" || tt.reason == "incomplete" {
			continue // these answer with a list
		}
		if tt.reason == "status-403" {
			continue // see TestRejectionOfTheOnlySideThatMayKnow
		}
		t.Run(tt.name, func(t *testing.T) {
			w := newWorldFor(t, tt.reason)
			w.local.answer, w.theirs.answer = answerJSON(http.StatusNotFound, notFoundBody), tt.answer
			if tt.name == "another kind of JSON" {
				w.theirs.answer = answerJSON(http.StatusOK, `[]`)
			}
			response, body := w.send(t, http.MethodGet, "/applications/web", "")
			checkUnavailable(t, response, body, tt.reason)
		})
	}
}

// TestRefusalOfTheOnlySideThatMayKnow checks that a caller gets the upstream Clouddriver's refusal as
// it is, if this server does not know what was asked for.
func TestRefusalOfTheOnlySideThatMayKnow(t *testing.T) {
	w := newWorld(t, nil)
	w.local.answer = answerJSON(http.StatusNotFound, notFoundBody)
	w.theirs.answer = answerJSON(http.StatusForbidden, `{"message":"Access is denied"}`)
	if response, body := w.send(t, http.MethodGet, "/applications/web", ""); response.StatusCode != http.StatusForbidden || body != `{"message":"Access is denied"}` {
		t.Errorf("got %d %s, want the refusal", response.StatusCode, body)
	}
}

// checkUnavailable checks for an error in Clouddriver's form.
func checkUnavailable(t *testing.T, response *http.Response, body, reason string) {
	t.Helper()
	var e struct {
		Timestamp, Error, Exception, Message string
		Status                               int
	}
	err := json.Unmarshal([]byte(body), &e)
	if err != nil || response.StatusCode != http.StatusServiceUnavailable || e.Status != http.StatusServiceUnavailable || e.Exception == "" ||
		!strings.Contains(e.Message, "("+reason+")") || !strings.Contains(e.Message, "upstream.baseUrl") || response.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %v %s, want %d with the reason %q", response.StatusCode, err, body, http.StatusServiceUnavailable, reason)
	}
}

// TestUpstreamIsDown checks all modes without anything at upstream.baseUrl.
func TestUpstreamIsDown(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.BaseURL = "http://" + ports.Unused(t) })
	w.local.answer = answerJSON(http.StatusOK, `[]`)
	for _, tt := range []struct {
		name, method, path, body string
		code                     int
	}{
		{"an account of an agent", "GET", "/manifests/agents/ns/pod%20a", "", 200},
		{"another account", "GET", "/manifests/theirs/ns/pod%20a", "", 503},
		{"an account that may exist there", "GET", "/credentials/nobody", "", 503},
		{"a merged list", "GET", "/credentials", "", 503},
		{"a search", "GET", "/search?q=a", "", 503},
		{"operations of agents' accounts", "POST", "/kubernetes/ops", "[" + deployTo(ourAccount) + "]", 200},
		{"operations of other accounts", "POST", "/kubernetes/ops", "[" + deployTo(theirAccount) + "]", 503},
		{"a task of this server", "GET", "/task/" + ourTask, "", 200},
		{"a task that may exist there", "GET", "/task/x", "", 503},
		{"what only the other has", "GET", "/subnets", "", 503},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response, body := w.send(t, tt.method, tt.path, tt.body)
			if tt.code == http.StatusServiceUnavailable {
				checkUnavailable(t, response, body, "unreachable")
			} else if response.StatusCode != tt.code {
				t.Errorf("got %d %s, want %d", response.StatusCode, body, tt.code)
			}
		})
	}
}

// TestOwnErrorDoesNotWait checks that an error of this server is sent without waiting for the
// upstream Clouddriver.
func TestOwnErrorDoesNotWait(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MergeTimeout = time.Hour })
	w.theirs.answer = hang
	for _, status := range []int{http.StatusForbidden, http.StatusBadRequest, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		w.local.answer = answerJSON(status, `{"message":"own"}`)
		if response, body := w.send(t, http.MethodGet, "/applications/web", ""); response.StatusCode != status || body != `{"message":"own"}` {
			t.Errorf("got %d %s, want %d of this server", response.StatusCode, body, status)
		}
	}
}

// TestOwnAnswerLargerThanTheMemory checks an answer of this server that is too large to be merged. Where the upstream Clouddriver
// has nothing, its size does not matter.
func TestOwnAnswerLargerThanTheMemory(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MergeBytes = 1 << 20 })
	large := `[{"account":"agents","x":"` + strings.Repeat("x", 1<<20) + `"}]`
	w.answers(large, `[{"account":"theirs"}]`)
	response, body := w.send(t, http.MethodGet, "/serverGroups?applications=a", "")
	if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "upstream.mergeBytes higher") {
		t.Errorf("got %d %.300s, want an error", response.StatusCode, body)
	}
	w.answers(`[]`, `[{"account":"theirs"}]`)
	if _, body := w.send(t, http.MethodGet, "/serverGroups?applications=a", ""); body != `[{"account":"theirs"}]` {
		t.Errorf("afterwards got %s, want a merged answer", body)
	}
	w.answers(large, `[{"account":"theirs"}]`)
	if response, body := w.send(t, http.MethodGet, "/serverGroups?ids=agents:shop:web", ""); response.StatusCode != http.StatusOK || body != large {
		t.Errorf("got %d with %d bytes, want all %d", response.StatusCode, len(body), len(large))
	}
}

// TestForwardToABadUpstream checks what is passed on.
func TestForwardToABadUpstream(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		code   int
		want   string // of the body; for 503 the reason
	}{
		{"it does not answer", hang, 503, "timeout"},
		{"it closes the connection", rawAnswer(""), 503, "unreachable"},
		{"it does not speak HTTP", rawAnswer("SSH-2.0-OpenSSH_9.9\r\n"), 503, "unreachable"},
		{"its header is endless", rawAnswer("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxHeaderBytes) + "\r\n\r\n[]"), 503, "unreachable"},
		{"its header has a line break", rawAnswer("HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\nContent-Length: 2\r\n\r\n[]"), 503, "unreachable"},
		{"its own error", answerJSON(http.StatusInternalServerError, `{"message":"theirs"}`), 500, `{"message":"theirs"}`},
		{"its own 404", answerJSON(http.StatusNotFound, `{"message":"theirs"}`), 404, `{"message":"theirs"}`},
		{"garbage is its own", answerJSON(http.StatusOK, "\x00\xff"), 200, "\x00\xff"},
		{"another protocol", rawAnswer("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"), 503, "unreachable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorldFor(t, tt.want)
			w.theirs.answer = tt.answer
			response, body := w.send(t, http.MethodGet, "/instances/theirs/ns/pod%20a", "", "Connection", "Upgrade", "Upgrade", "x")
			if tt.code == http.StatusServiceUnavailable {
				checkUnavailable(t, response, body, tt.want)
			} else if response.StatusCode != tt.code || body != tt.want {
				t.Errorf("got %d %q, want %d %q", response.StatusCode, body, tt.code, tt.want)
			}
		})
	}
}

// TestForwardedAnswerEndsEarly checks that a caller cannot take half an answer for a whole one.
func TestForwardedAnswerEndsEarly(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"it stops in the middle":        beginThenHang,
		"half an answer, by its length": rawAnswer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[{\"account\":"),
		"half an answer, by its chunks": rawAnswer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[{\"a\"\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldFor(t, "")
			w.theirs.answer = answer
			if name == "it stops in the middle" {
				w.handler.client.transport.timeout = hangTimeout // only for pauses: the header of the answer has a minute
			}
			response, err := http.Get(w.url + "/subnets")
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if body, err := io.ReadAll(response.Body); err == nil {
				t.Errorf("got %q without an error, want a connection that breaks", body)
			}
		})
	}
}

// TestForwardTakesLittleMemory passes on 256 MB.
func TestForwardTakesLittleMemory(t *testing.T) {
	w := newWorld(t, nil)
	w.theirs.answer = endless
	response, err := http.Get(w.url + "/subnets")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if n, err := io.CopyN(io.Discard, response.Body, 256<<20); err != nil {
		t.Fatalf("got %d bytes: %v", n, err)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB for an answer of 256 MiB, want at most 32", grown>>20)
	}
}

// TestAccountsCannotBeRead checks a start without a database, and a database that fails later.
func TestAccountsCannotBeRead(t *testing.T) {
	w := newWorld(t, nil)
	w.accounts.fail(vedette.Errorf(vedette.Unavailable, "the database does not answer"))
	for _, path := range []string{"/credentials", "/credentials/theirs"} {
		response, body := w.send(t, http.MethodGet, path, "")
		if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "the database does not answer") {
			t.Errorf("%s: got %d %s, want %d", path, response.StatusCode, body, http.StatusServiceUnavailable)
		}
	}
	w.accounts.fail(nil)
	w.send(t, http.MethodGet, "/credentials/theirs", "")
	w.accounts.fail(errors.New("the database is gone"))
	for path, want := range map[string]string{"/credentials/theirs": "answer of theirs", "/credentials/agents": "answer of own"} {
		if _, body := w.send(t, http.MethodGet, path, ""); body != want {
			t.Errorf("%s: got %s, want %s", path, body, want)
		}
	}
}

// TestOnlyDecidingBodiesAreLimited checks bodies that decide who answers, and bodies that stream.
func TestOnlyDecidingBodiesAreLimited(t *testing.T) {
	w := newWorld(t, nil)
	huge := `[{"deployManifest":{"account":"theirs","x":"` + strings.Repeat("x", maxBodyBytes) + `"}}]`
	if response, body := w.send(t, http.MethodPost, "/kubernetes/ops", huge); response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d %s, want %d", response.StatusCode, body, http.StatusRequestEntityTooLarge)
	}
	if response, _ := w.send(t, http.MethodPost, "/aws/ops", huge); response.StatusCode != http.StatusOK {
		t.Errorf("a body for another provider: got %d, want %d", response.StatusCode, http.StatusOK)
	}
	if seen := w.theirs.requests(); len(seen) != 1 || len(seen[0].Header.Get("Test-Body")) != len(huge) {
		t.Errorf("the other provider's operations did not arrive as a whole")
	}
}

// TestErrorsOfCallersAreNotFailures checks which errors count against the upstream Clouddriver.
func TestErrorsOfCallersAreNotFailures(t *testing.T) {
	w := newWorld(t, nil)
	for _, err := range []error{middleware.ErrSlowBody, fmt.Errorf("send: %w", &http.MaxBytesError{Limit: 1})} {
		w.handler.client.transport.countFailure(t.Context(), err)
	}
	if s := w.handler.client.stats.health(); s.Failures != 0 {
		t.Errorf("got %+v, want no failures", s)
	}
	w.handler.client.transport.countFailure(t.Context(), io.EOF)
	if s := w.handler.client.stats.health(); s.Failures != 1 || s.LastError != reasonUnreachable {
		t.Errorf("got %+v, want one failure", s)
	}
}
