package upstream

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/task"
)

// newLyingWorld starts an upstream Clouddriver that repeats the headers of requests in its answers.
func newLyingWorld(t *testing.T, answer func(http.ResponseWriter, []byte)) *world {
	w := newWorld(t, func(c *Config) {
		c.Username, c.Password = "vedette", configfile.NewSecret(`pa"ss/w<rd=and=more`)
		c.Headers = secrets(map[string]string{"X-Gateway-Token": "Bearer gw-token-123-and-more", "X-Tenant": "t",
			"X-Spinnaker-User": "spinnaker", "X-Short": "cluster"})
	})
	w.theirs.answer = func(rw http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			if strings.HasPrefix(name, "X-") || name == "Authorization" {
				rw.Header()[name] = values
			}
		}
		rw.Header().Set("X-Debug", "sent "+r.Header.Get("Authorization"))
		rw.Header().Set("Trailer", "X-Late")
		_, password, _ := r.BasicAuth()
		echo, err := json.Marshal(map[string]any{"message": "rejected", "headers": r.Header, "password": password, "plain": "kept"})
		if err != nil {
			t.Error(err)
		}
		answer(rw, echo)
		rw.Header().Set("X-Late", r.Header.Get("Authorization"))
	}
	return w
}

// expectHidden checks that an answer contains nothing of what the server has added.
func expectHidden(t *testing.T, name string, header http.Header, body string) {
	t.Helper()
	all := body
	for name, values := range header {
		all += "\n" + name + ": " + strings.Join(values, ",")
	}
	for _, secret := range []string{`pa"ss`, `pa\"ss`, "dmVkZXR0ZTpwYSJ", "gw-token", "X-Tenant: t"} {
		if strings.Contains(all, secret) {
			t.Errorf("%s: %q is in the answer:\n%s", name, secret, all)
		}
	}
}

// TestEchoedCredentialsAreHidden checks what a caller gets of an answer that repeats the request.
func TestEchoedCredentialsAreHidden(t *testing.T) {
	for _, tt := range []struct {
		name, encoding string
		answer         func(http.ResponseWriter, []byte)
		wantBody       bool
	}{
		{"an error", "identity", func(rw http.ResponseWriter, echo []byte) {
			rw.WriteHeader(http.StatusForbidden)
			_, _ = rw.Write(echo)
		}, true},
		{"an error in many pieces", "identity", func(rw http.ResponseWriter, echo []byte) {
			rw.WriteHeader(http.StatusInternalServerError)
			_, _ = io.Copy(flushWriter{rw}, iotest.OneByteReader(bytes.NewReader(echo)))
		}, true},
		{"a compressed error", "gzip, br", func(rw http.ResponseWriter, echo []byte) {
			rw.Header().Set("Content-Encoding", "gzip")
			rw.WriteHeader(http.StatusBadGateway)
			z := gzip.NewWriter(rw)
			_, _ = z.Write(echo)
			_ = z.Close()
		}, true},
		{"an error in an encoding that nobody asked for", "gzip, br", func(rw http.ResponseWriter, echo []byte) {
			rw.Header().Set("Content-Encoding", "br")
			rw.WriteHeader(http.StatusForbidden)
			_, _ = rw.Write(echo)
		}, false},
		{"a redirect", "identity", func(rw http.ResponseWriter, echo []byte) {
			rw.Header().Set("Location", "/x?token=gw-token-123-and-more")
			rw.WriteHeader(http.StatusFound)
			_, _ = rw.Write(echo)
		}, true},
		{"the header of a success", "identity", func(rw http.ResponseWriter, _ []byte) {
			_, _ = io.WriteString(rw, `{"plain":"kept"}`)
		}, true},
	} {
		w := newLyingWorld(t, tt.answer)
		response, body := w.send(t, http.MethodGet, "/subnets/aws", "", "Accept-Encoding", tt.encoding, "Authorization", "Bearer caller")
		expectHidden(t, tt.name, response.Header, body)
		expectHidden(t, tt.name+", trailer", response.Trailer, "")
		if tt.wantBody != strings.Contains(body, `"plain":"kept"`) {
			t.Errorf("%s: got the body %s", tt.name, body)
		}
	}
}

// TestEarlyHintsAreNotPassedOn checks the header of an informational response.
func TestEarlyHintsAreNotPassedOn(t *testing.T) {
	w := newLyingWorld(t, func(rw http.ResponseWriter, _ []byte) { rw.WriteHeader(http.StatusEarlyHints) })
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
		t.Errorf("got %d %v", code, header)
		return nil
	}}
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, w.url+"/subnets/aws", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("got %d, want 200", response.StatusCode)
	}
}

// flushWriter sends what is written at once.
type flushWriter struct{ http.ResponseWriter }

func (w flushWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	return n, err
}

// TestTasksRepeatNoCredentials checks tasks, which other users can read: what they say comes from an error,
// or from the history of a task that failed. The credentials of the caller are hidden, too.
func TestTasksRepeatNoCredentials(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
		w := newLyingWorld(t, func(rw http.ResponseWriter, echo []byte) {
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, `{"message":"caller-secret-and-more and gw-token-123-and-more","status":{"status":"caller-secret-and-more, moniker.spinnaker.io/cluster","completed":true},"resultObjects":[`+string(echo)+`]}`)
		})
		remote := &callerRemote{Remote: w.remote, header: http.Header{"Authorization": {"Bearer caller-secret-and-more"}}}
		got, err := remote.Get(t.Context(), "a")
		if (err == nil) != (status == http.StatusOK) || (err == nil) != got.Completed {
			t.Errorf("%d: got %+v, %v", status, got, err)
		}
		text, _ := json.Marshal(task.RemoteTask{Status: got.Status, Results: got.Results})
		if err != nil {
			text = []byte(err.Error())
		}
		expectHidden(t, "a task", nil, string(text))
		if strings.Contains(string(text), "caller-secret") || !strings.Contains(string(text), "***") {
			t.Errorf("%d: got %s, want the caller's credentials masked", status, text)
		}
		if err == nil && !strings.Contains(string(text), "moniker.spinnaker.io/cluster") {
			t.Errorf("got %s, want the annotation unchanged, because it is not a credential", text)
		}
	}
}
