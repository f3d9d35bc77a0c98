package compare_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/compare"
)

func newServer(t *testing.T, handle http.HandlerFunc) *compare.Server {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	source, err := compare.NewServer("clouddriver", server.URL, http.Header{"X-Spinnaker-User": {"tester"}})
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func TestRequestsReachTheServerUnchanged(t *testing.T) {
	source := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		case "/empty":
		case "/text":
			fmt.Fprint(w, "no JSON")
		default:
			fmt.Fprintf(w, `[%q, %q, %q]`, r.Method, r.RequestURI, r.Header.Get("X-SPINNAKER-USER"))
		}
	})
	for path, want := range map[string]string{
		"/manifests/prod//pod%20a%2Fb?includeEvents=false": `200 ["GET", "/manifests/prod//pod%20a%2Fb?includeEvents=false", "tester"]`,
		"/search?q=%2A": `200 ["GET", "/search?q=%2A", "tester"]`,
		"/empty":        "200 null",
		"/text":         `200 "no JSON"`,
		"/redirect":     `302 "<a href=\"/elsewhere\">Found</a>.\n\n"`,
	} {
		got, err := source.Answer(t.Context(), path)
		if text := fmt.Sprintf("%d %s", got.Status, strings.ReplaceAll(strings.ReplaceAll(string(got.Body), `\u003c`, "<"), `\u003e`, ">")); err != nil || text != want {
			t.Errorf("%s: got %s, %v, want %s", path, text, err, want)
		}
	}
}

// TestServerBodiesAreBounded reads an answer that never ends.
func TestServerBodiesAreBounded(t *testing.T) {
	source := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		piece := []byte(strings.Repeat("[", 1<<20))
		for r.Context().Err() == nil {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	_, err := source.Answer(t.Context(), "/applications")
	if err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Errorf("got error %v, want one about the size", err)
	}
}

func TestServerErrorsHideThePassword(t *testing.T) {
	for _, address := range []string{"", "ftp://x", "http://", "::"} {
		if _, err := compare.NewServer("vedette", address, nil); err == nil || !strings.Contains(err.Error(), "vedette") {
			t.Errorf("%q: got error %v, want one that names the server", address, err)
		}
	}
	source, err := compare.NewServer("vedette", "http://user:hunter2@127.0.0.1:1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = source.Answer(t.Context(), "/credentials")
	if err == nil || !strings.Contains(err.Error(), "ask vedette: GET /credentials: ") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got error %v, want one with the path and without the password", err)
	}
}

func TestRecordingKeepsOrderAndLastAnswer(t *testing.T) {
	rec, err := compare.ReadRecording(strings.NewReader(`{"path":"/b","status":200,"body":[1.0]}
{"path":"/a","status":404,"body":"x"}
{"path":"/b","status":200,"body":[2]}`))
	if err != nil || fmt.Sprint(rec.Paths) != "[/b /a]" {
		t.Fatalf("got %v, %v, want the paths in their order", rec, err)
	}
	if got, err := rec.Answer(t.Context(), "/b"); err != nil || string(got.Body) != "[2]" {
		t.Errorf("got %s, %v, want the last answer", got.Body, err)
	}
	if _, err := rec.Answer(t.Context(), "/c"); err == nil {
		t.Error("got no error for a path that was not recorded")
	}
	for _, text := range []string{"", "x", `{"path":"/a"}`, `{"status":200}`, `[]`, `{"path":"/a","status":200,"body":1`} {
		if _, err := compare.ReadRecording(strings.NewReader(text)); err == nil {
			t.Errorf("%q: got no error", text)
		}
	}
}
