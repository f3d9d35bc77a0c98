package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/cli/fanout"
)

// waitServer has the account dev with one pod. A test decides what the cluster says, and what the stream reports.
type waitServer struct {
	mu      sync.Mutex
	pod     string // in the cluster; "" for none
	reads   int
	events  chan string // of the stream
	stale   bool        // the feed is not live
	read    chan int    // gets the number of reads after each
	noFeeds bool
}

const (
	readyPod   = `{"kind":"Pod","metadata":{"name":"p","namespace":"shop","uid":"1","resourceVersion":"%d"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	pendingPod = `{"kind":"Pod","metadata":{"name":"p","namespace":"shop","uid":"1","resourceVersion":"%d"},"status":{"phase":"Pending"}}`
)

func event(kind, pod string, version int) string {
	return fmt.Sprintf("event: %s\ndata: {\"account\":\"dev\",\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"p\",\"resourceVersion\":\"%d\",\"manifest\":"+pod+"}\n\n", kind, version, version)
}

func (s *waitServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/changes"):
		w.Header().Set("Content-Type", "text/event-stream")
		freshness := `{"feeds":1}`
		switch {
		case s.stale:
			freshness = `{"feeds":1,"freshness":[{"account":"dev","kind":"Pod","state":"syncing","stale":true}]}`
		case s.noFeeds:
			freshness = `{"feeds":0}`
		}
		_, _ = fmt.Fprintf(w, "event: ready\ndata: %s\n\n", freshness)
		w.(http.Flusher).Flush()
		for {
			select {
			case e := <-s.events:
				_, _ = fmt.Fprint(w, e)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	case r.Method == http.MethodGet:
		_, _ = fmt.Fprint(w, `{"items":[{"name":"dev"}]}`)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reads++
		if s.pod == "" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"id":"1","state":"failed","status":404,"reason":"NotFound","message":"pods \"p\" not found"}`)
		} else {
			_, _ = fmt.Fprintf(w, `{"id":"1","state":"done","status":200,"keys":[{"kind":"Pod","namespace":"shop","name":"p"}],"objects":[%s]}`, s.pod)
		}
		select {
		case s.read <- s.reads:
		default:
		}
	}
}

func (s *waitServer) set(pod string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pod = pod
}

// start runs a wait command, and returns a channel that gets its output.
func (s *waitServer) start(t *testing.T, command string) <-chan string {
	t.Helper()
	s.events, s.read = make(chan string, 10), make(chan int, 100)
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	ended := make(chan string, 1)
	go func() {
		out, errOut, err := runCLI(t.Context(), append(strings.Fields(command), "--account", "dev", "--server", server.URL)...)
		text := out + errOut
		var summary fanout.FailedError
		if err != nil && !errors.As(err, &summary) {
			text += err.Error()
		}
		ended <- text
	}()
	return ended
}

// awaitRead waits until the command has read the cluster once more. It must not end before.
func (s *waitServer) awaitRead(t *testing.T, ended <-chan string) {
	t.Helper()
	select {
	case <-s.read:
	case text := <-ended:
		t.Fatalf("the command ended, and did not ask the cluster: %q", text)
	}
}

// TestWaitFollowsReports checks that a report ends the wait, unless it is older than what the cluster said.
func TestWaitFollowsReports(t *testing.T) {
	t.Parallel()
	s := &waitServer{pod: fmt.Sprintf(pendingPod, 10)}
	ended := s.start(t, "wait pod p -n shop --for=condition=Ready --timeout 5m")
	<-s.read
	s.events <- event("modified", readyPod, 9) // makes the command read the cluster again, and not believe it
	s.awaitRead(t, ended)
	s.events <- event("modified", readyPod, 11)
	if got, want := <-ended, "pod/p condition met\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWaitReadsTheCluster checks that the cluster is read again and again if no live feed has the object.
func TestWaitReadsTheCluster(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*waitServer{"stale": {stale: true}, "not cached": {noFeeds: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.pod = fmt.Sprintf(pendingPod, 10)
			ended := s.start(t, "wait pod p -n shop --for=jsonpath={.status.phase}=Running --timeout 5m")
			for range 3 {
				s.awaitRead(t, ended)
			}
			s.set(fmt.Sprintf(readyPod, 11))
			if got, want := <-ended, "pod/p condition met\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestWaitAsksTheClusterWhatIsGone checks that a report of a deletion is not believed without the cluster.
func TestWaitAsksTheClusterWhatIsGone(t *testing.T) {
	t.Parallel()
	s := &waitServer{pod: fmt.Sprintf(pendingPod, 10)}
	ended := s.start(t, "wait pod p -n shop --for=delete --timeout 5m")
	<-s.read
	s.events <- event("deleted", pendingPod, 9)
	s.awaitRead(t, ended)
	s.set("")
	s.events <- event("deleted", pendingPod, 10)
	if got, want := <-ended, "pod/p condition met\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWaitErrorsNameObjectAndCondition(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ command, pod, want string }{
		{"wait pod p -n shop --for=condition=Ready --timeout 0", fmt.Sprintf(pendingPod, 10), "Error: dev: condition not met for pod/p\n"},
		{"wait pod p -n shop --for=condition=Ready --timeout 1ms", fmt.Sprintf(pendingPod, 10), "Error: dev: timed out waiting for the condition on pod/p\n"},
		{"wait pod p -n shop --for=condition=Ready", "", "Error: dev: pod/p not found\n"},
		{"wait pod p -n shop --for=create --timeout 1ms", "", "Error: dev: timed out waiting for the condition on pod/p\n"},
		{"wait pod p -n shop --for=delete", "", ""},
		{"wait pod p -n shop --for=jsonpath={.metadata}=x", fmt.Sprintf(pendingPod, 10), "Error: dev: pod/p: jsonpath {.metadata} leads to a nested object or list which is not supported\n"},
		{"wait pod p -n shop", "", "no condition: use --for, for example --for=condition=Ready"},
		{"wait pod p -n shop --for=Ready", "", `unrecognized condition: "Ready": use condition=NAME[=VALUE], jsonpath='{EXPRESSION}'[=VALUE], create or delete`},
	} {
		s := &waitServer{pod: tt.pod}
		if got := <-s.start(t, tt.command); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.command, got, tt.want)
		}
	}
}

// otherNamespace moves an event to another namespace, where an object of the same name is another one.
func otherNamespace(event string) string {
	return strings.ReplaceAll(event, `"namespace":"shop"`, `"namespace":"other"`)
}

// TestWaitIsForOneObject checks that a wait without a namespace does not take an object of the same name in another namespace for
// the one that the cluster has shown.
func TestWaitIsForOneObject(t *testing.T) {
	t.Parallel()
	s := &waitServer{pod: fmt.Sprintf(pendingPod, 10)}
	ended := s.start(t, "wait pod p --for=condition=Ready --timeout 5m")
	<-s.read
	s.events <- otherNamespace(event("modified", readyPod, 20))
	select {
	case text := <-ended:
		t.Fatalf("got %q because of another pod", text)
	case <-time.After(200 * time.Millisecond):
	}
	s.events <- event("modified", readyPod, 11)
	if got, want := <-ended, "pod/p condition met\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWaitForCreate checks that a report ends the wait for an object that did not exist, and that one that is older than its
// deletion does not.
func TestWaitForCreate(t *testing.T) {
	t.Parallel()
	s := &waitServer{}
	ended := s.start(t, "wait pod p -n shop --for=create --timeout 5m")
	<-s.read
	s.events <- event("added", readyPod, 9)
	s.awaitRead(t, ended)
	s.set(fmt.Sprintf(readyPod, 11))
	s.events <- event("added", readyPod, 11)
	if got, want := <-ended, "pod/p condition met\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
