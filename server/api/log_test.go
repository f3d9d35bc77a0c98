package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

// dispatcherWithLog returns a dispatcher that answers each operation with a log.
func dispatcherWithLog(stream io.ReadCloser) *fakeDispatcher {
	return &fakeDispatcher{do: func(context.Context, vedette.Operation) vedette.Outcome {
		return vedette.Outcome{State: vedette.Done, Status: 200, Stream: stream}
	}}
}

func TestLogParametersReachTheAgent(t *testing.T) {
	a := &fakeDispatcher{do: func(context.Context, vedette.Operation) vedette.Outcome {
		return vedette.Outcome{State: vedette.Done, Status: 200, Stream: io.NopCloser(strings.NewReader("a line\n"))}
	}}
	w := serveOperations(t, a)
	pod := vedette.Target{Namespace: "shop", Name: "web-0"}
	for _, tt := range []struct {
		query string
		want  vedette.LogsArgs
	}{
		{"", vedette.LogsArgs{Target: pod}},
		{"&container=app&previous=true&timestamps=true", vedette.LogsArgs{Target: pod, Container: "app", Previous: true, Timestamps: true}},
		{"&allContainers=true&follow=true&tailLines=0", vedette.LogsArgs{Target: pod, AllContainers: true, Follow: true, TailLines: new(int64(0))}},
		{"&since=1500ms&follow=false", vedette.LogsArgs{Target: pod, SinceSeconds: new(int64(2))}},
		{"&sinceTime=2026-01-31T12:00:00Z", vedette.LogsArgs{Target: pod, SinceTime: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)}},
	} {
		a.received = nil
		response, body := w.get("/logs?account=dev&namespace=shop&pod=web-0" + tt.query)
		if response.StatusCode != 200 || string(body) != "a line\n" || response.Header.Get("Content-Type") != "text/plain; charset=utf-8" ||
			response.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got %d %q %v", tt.query, response.StatusCode, body, response.Header)
		}
		if got, want := encodeArgs(t, a.received[0].Args), encodeArgs(t, tt.want); got != want || a.received[0].Account != "dev" {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.query, got, want)
		}
	}
}

func TestInvalidLogRequestsAreRejected(t *testing.T) {
	a := &fakeDispatcher{}
	w := serveOperations(t, a)
	for query, want := range map[string]string{
		"pod=p":                            "the parameter account is missing",
		"account=dev":                      "the parameter pod is missing",
		"account=nope&pod=p":               "there is no account",
		"account=dev&pod=p&tail=3":         "did you mean tailLines?",
		"account=dev&pod=p&tailLines=-1":   "must be a number of lines",
		"account=dev&pod=p&follow=yes":     "must be true or false",
		"account=dev&pod=p&since=soon":     "must be a duration",
		"account=dev&pod=p&sinceTime=noon": "must be a time",
		"account=dev&pod=p&since=1s&sinceTime=2026-01-31T12:00:00Z": "cannot be combined",
		"account=dev&pod=p&container=a&allContainers=true":          "cannot be combined",
	} {
		response, body := w.get("/logs?" + query)
		if response.StatusCode < 400 || !strings.Contains(string(body), want) {
			t.Errorf("%s: got %d %s", query, response.StatusCode, body)
		}
	}
	if len(a.operations()) > 0 {
		t.Error("got an operation, want none")
	}
	for _, tt := range []struct {
		status int
		kind   string
	}{{400, "invalid"}, {401, "denied"}, {403, "denied"}, {404, "not_found"}, {422, "invalid"}, {429, "invalid"}, {500, "unavailable"}, {503, "unavailable"}} {
		a.do = func(context.Context, vedette.Operation) vedette.Outcome {
			return vedette.Outcome{State: vedette.Failed, Status: tt.status, Message: "the cluster's own words"}
		}
		response, body := w.get("/logs?account=dev&pod=p")
		var got struct {
			Error struct{ Kind, Message string }
		}
		if err := json.Unmarshal(body, &got); err != nil || response.StatusCode != tt.status || got.Error.Kind != tt.kind || got.Error.Message != "the cluster's own words" {
			t.Errorf("%d: got %d %s, want %d", tt.status, response.StatusCode, body, tt.status)
		}
	}
}

// TestLogIsStreamed checks that each line arrives before the next one is written, and that the
// response starts before the first line.
func TestLogIsStreamed(t *testing.T) {
	log, in := io.Pipe()
	w := serveOperations(t, dispatcherWithLog(log))
	response, err := http.Get(w.url + "/vedette/v1/logs?account=dev&pod=p&follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	buf := make([]byte, 100)
	for _, line := range []string{"one\n", "two\n"} {
		if _, err := io.WriteString(in, line); err != nil {
			t.Fatal(err)
		}
		n, err := io.ReadAtLeast(response.Body, buf, len(line))
		if err != nil || string(buf[:n]) != line {
			t.Fatalf("got %q, %v", buf[:n], err)
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(response.Body); err != nil || len(rest) > 0 {
		t.Errorf("end of the log: got %q, %v", rest, err)
	}
}

// TestInterruptedLogAbortsResponse checks that clients can distinguish a log that breaks off
// from one that ends.
func TestInterruptedLogAbortsResponse(t *testing.T) {
	log, in := io.Pipe()
	w := serveOperations(t, dispatcherWithLog(log))
	go func() {
		_, _ = io.WriteString(in, "half a li")
		_ = in.CloseWithError(errors.New("the kubelet is gone"))
	}()
	response, err := http.Get(w.url + "/vedette/v1/logs?account=dev&pod=p")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if string(body) != "half a li" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v", body, err)
	}
	empty, broken := io.Pipe()
	_ = broken.CloseWithError(errors.New("the kubelet is gone"))
	if response, body := serveOperations(t, dispatcherWithLog(empty)).get("/logs?account=dev&pod=p"); response.StatusCode != 503 || !strings.Contains(string(body), "the kubelet is gone") {
		t.Errorf("before the first byte: got %d %s, want %d and %q", response.StatusCode, body, 503, "the kubelet is gone")
	}
}

// TestLogIsClosedWhenReaderDisconnects checks that a log is closed at its source when the
// client disconnects, even if the log is silent.
func TestLogIsClosedWhenReaderDisconnects(t *testing.T) {
	log, in := io.Pipe()
	w := serveOperations(t, dispatcherWithLog(log))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/vedette/v1/logs?account=dev&pod=p&follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	response.Body.Close()
	closed := make(chan error, 1)
	go func() {
		for {
			if _, err := io.WriteString(in, "line\n"); err != nil {
				closed <- err
				return
			}
		}
	}()
	select {
	case err := <-closed:
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the log is still open after the client disconnected")
	}
}

func TestHeadReadsNoLog(t *testing.T) {
	a := &fakeDispatcher{}
	w := serveOperations(t, a)
	response, err := http.Head(w.url + "/vedette/v1/logs?account=dev&pod=p")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 200 || len(a.operations()) != 0 {
		t.Errorf("got %d and %d operations", response.StatusCode, len(a.operations()))
	}
}
