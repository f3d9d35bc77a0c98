package client

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// receivedOperation is a request body as a server reads it.
type receivedOperation struct{ ID, Name string }

// newTestClient returns a client of a server that handles the n-th request with the
// n-th handler, and the requests that the server has received.
func newTestClient(t *testing.T, handlers ...http.HandlerFunc) (*Client, *[]receivedOperation) {
	var requests []receivedOperation
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o receivedOperation
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			t.Error(err)
		}
		requests = append(requests, o)
		handlers[min(len(requests), len(handlers))-1](w, r)
	}))
	t.Cleanup(server.Close)
	c, err := New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return c, &requests
}

func abort(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func respond(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// TestOperateRetriesBrokenResponses checks that an incomplete response is requested
// again with the same ID.
func TestOperateRetriesBrokenResponses(t *testing.T) {
	truncated := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"state":"done"`)
	}
	c, requests := newTestClient(t, abort, truncated, respond(504, "<html>Gateway Timeout</html>"), respond(409, `{"error":{"kind":"conflict","message":"it is under way"}}`), respond(422, `{"state":"failed","status":422,"message":"no"}`))
	out, err := c.Operate(t.Context(), Operation{Account: "dev", Args: vedette.RestartArgs{Target: vedette.Target{Kind: "deploy", Name: "web"}}}, "test")
	if err != nil || out.State != vedette.Failed || out.Message != "no" || len(*requests) != 5 {
		t.Fatalf("got %+v, %v after %d requests", out, err, len(*requests))
	}
	for _, o := range *requests {
		if o.ID == "" || o.ID != (*requests)[0].ID || o.Name != "web" {
			t.Errorf("got the request %+v, want the same ID in each", o)
		}
	}
}

// TestOperateDoesNotRetryRefusals checks that a rejected request and a request that was
// not sent are not repeated.
func TestOperateDoesNotRetryRefusals(t *testing.T) {
	c, requests := newTestClient(t, respond(409, `{"error":{"kind":"conflict","message":"the id was given to another"}}`))
	_, err := c.Operate(t.Context(), Operation{Account: "dev", Args: vedette.RestartArgs{}}, "test")
	if vedette.KindOf(err) != vedette.Conflict || len(*requests) != 1 {
		t.Errorf("got %v after %d requests, want a conflict after one", err, len(*requests))
	}
	unreachable, err := New("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unreachable.Operate(t.Context(), Operation{Args: vedette.RestartArgs{}}, "test"); vedette.KindOf(err) != vedette.Unavailable || !strings.Contains(err.Error(), "nothing listens at") {
		t.Errorf("got the error %v", err)
	}
	c, requests = newTestClient(t, respond(502, "<html>Bad Gateway</html>"))
	if _, err := c.Operate(t.Context(), Operation{Args: vedette.GetArgs{}}, "test"); err == nil || !strings.Contains(err.Error(), "not the response of a Vedette server") || (*requests)[0].ID != "" {
		t.Errorf("got the error %v", err)
	}
}

// TestTruncatedLogReturnsAnError checks that a reader notices an incomplete log.
func TestTruncatedLogReturnsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	c, err := New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	log, err := c.Logs(t.Context(), LogQuery{Account: "dev", LogsArgs: vedette.LogsArgs{Target: vedette.Target{Name: "p"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if text, err := io.ReadAll(log); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %q, %v; want an error that is not io.EOF", text, err)
	}
}
