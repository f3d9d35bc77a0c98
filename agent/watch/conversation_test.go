package watch_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/internal/golden"
)

// A conversation is a file in testdata. Above the line "---" are the responses of an API
// server to the lists and watches of one feed, in order:
//
//	kinds configmap           what is watched (configmap or secret)
//	streamed                  snapshots are requested as streams
//	answer 200                the next response; its body follows, line by line
//	header Retry-After: 1     a header of the response
//	cut                       then the connection breaks
//	hold                      then the connection stays open and silent
//	managed                   onlySpinnakerManaged
//
// Below are the resulting requests and events. A conversation ends with the first event
// of mark 999.
type conversation struct {
	kinds    []string
	streamed bool
	managed  bool
	answers  []*scriptedAnswer
}

type scriptedAnswer struct {
	code   int
	header [2]string
	body   []string
	end    string // "", "cut" or "hold"
}

func TestConversationsRunAsRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	must(t, err)
	if len(files) < 9 {
		t.Fatalf("got %d conversations, want at least 9", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			must(t, err)
			script, _, _ := strings.Cut(string(raw), "---\n")
			got := play(t, readConversation(t, script))
			golden.Compare(t, file, script+"---\n"+got)
		})
	}
}

func readConversation(t *testing.T, script string) (c conversation) {
	var last *scriptedAnswer
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "", "#":
		case "kinds":
			c.kinds = strings.Fields(rest)
		case "streamed":
			c.streamed = true
		case "managed":
			c.managed = true
		case "answer":
			code, err := strconv.Atoi(rest)
			must(t, err)
			last = &scriptedAnswer{code: code}
			c.answers = append(c.answers, last)
		case "header":
			name, value, _ := strings.Cut(rest, ": ")
			last.header = [2]string{name, value}
		case "cut", "hold":
			last.end = word
		default:
			last.body = append(last.body, line)
		}
	}
	return c
}

// transcript records requests and events.
type transcript struct {
	mu    sync.Mutex
	lines []string
	ended chan struct{}
	once  sync.Once
	r     *recorder
	host  string
}

var timeouts = regexp.MustCompile(`&timeoutSeconds=\d+`)

func (l *transcript) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ended:
		return
	default:
	}
	line = strings.ReplaceAll(line, l.host, "https://server")
	l.lines = append(l.lines, timeouts.ReplaceAllString(line, "")+"\n")
}

// Put records an event.
func (l *transcript) Put(ctx context.Context, e watch.Event) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.add(strings.TrimSpace(l.r.format(e)))
	if e.Mark == "999" {
		l.once.Do(func() { close(l.ended) })
	}
	return nil
}

const discoveryOfCore = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{},"versions":[{"version":"v1","freshness":"Current","resources":[
{"resource":"configmaps","responseKind":{"group":"","version":"v1","kind":"ConfigMap"},"scope":"Namespaced","singularResource":"configmap","verbs":["list","watch"],"shortNames":["cm"]},
{"resource":"secrets","responseKind":{"group":"","version":"v1","kind":"Secret"},"scope":"Namespaced","singularResource":"secret","verbs":["list","watch"]},
{"resource":"bindings","responseKind":{"group":"","version":"v1","kind":"Binding"},"scope":"Namespaced","singularResource":"binding","verbs":["create"]}]}]}]}`

// play runs a conversation and returns its transcript.
func play(t *testing.T, c conversation) string {
	l := &transcript{ended: make(chan struct{}), r: newRecorder()}
	next := make(chan *scriptedAnswer, len(c.answers))
	for _, a := range c.answers {
		next <- a
	}
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		l.add("> " + r.URL.String())
		select {
		case a := <-next:
			a.write(w, r)
		default: // the script is over
			w.WriteHeader(http.StatusTeapot)
			<-r.Context().Done()
		}
	})
	l.host = server.URL
	cfg := watch.Config{MinBackoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond, MinDeniedBackoff: time.Millisecond, MaxDeniedBackoff: 2 * time.Millisecond,
		StreamSnapshots: c.streamed, ProbeInterval: time.Hour, Log: slog.New(slog.DiscardHandler)}
	_, stop := start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: c.kinds, OnlySpinnakerManaged: c.managed}, l, cfg, nil)
	select {
	case <-l.ended:
	case <-time.After(time.Minute):
		t.Error("the conversation did not reach mark 999")
	}
	stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "")
}

func (a *scriptedAnswer) write(w http.ResponseWriter, r *http.Request) {
	if a.header[0] != "" {
		w.Header().Set(a.header[0], a.header[1])
	}
	w.WriteHeader(a.code)
	for _, line := range a.body {
		fmt.Fprintln(w, line)
	}
	_ = http.NewResponseController(w).Flush()
	switch a.end {
	case "cut":
		panic(http.ErrAbortHandler)
	case "hold":
		<-r.Context().Done()
	}
}

// newAPIServer returns an API server with TLS, HTTP/2 and two kinds.
func newAPIServer(t *testing.T, handleObjects http.HandlerFunc) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/api", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		fmt.Fprint(w, discoveryOfCore)
	})
	mux.HandleFunc("/apis", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	})
	mux.HandleFunc("/", handleObjects)
	return kubetest.NewServer(t, mux.ServeHTTP)
}

// TestAllFeedsRetryOnceOneRecovers checks that all feeds retry at once after an outage when
// one of them reaches the API server, although each backs off for an hour.
func TestAllFeedsRetryOnceOneRecovers(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter){
		"unavailable": func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"broken off": func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"kind":"List",`)
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) { testFeedsRecoverTogether(t, fail) })
	}
}

func testFeedsRecoverTogether(t *testing.T, fail func(w http.ResponseWriter)) {
	var down atomic.Bool
	down.Store(true)
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case down.Load():
			fail(w)
		case r.URL.Query().Has("watch"):
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`)
		}
	})
	r := newRecorder()
	cfg := watch.Config{MinBackoff: time.Hour, MaxBackoff: time.Hour, Log: slog.New(slog.DiscardHandler)}
	w, _ := start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap", "secret"}}, r, cfg, nil)
	haveState := func(state vedette.FeedState) func() bool {
		return func() bool { return r.state(configMapFeed) == state && r.state(secretFeed) == state }
	}
	r.await(t, "both feeds to fail", haveState(vedette.FeedFailing))
	down.Store(false)
	w.Reset(configMapFeed, "")
	r.await(t, "both feeds to be live", haveState(vedette.FeedLive))
}

// TestSecretWatchReconnectsAfterConnectionLoss resets the connection of one watch and leaves
// that of Secrets open and silent, like a firewall that forgot both. The watch of Secrets
// must reconnect before its idle timeout.
func TestSecretWatchReconnectsAfterConnectionLoss(t *testing.T) {
	watches := make(chan struct{}, 100) // of Secrets
	loseConnection := make(chan struct{})
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		isSecret := strings.HasSuffix(r.URL.Path, "/secrets")
		switch {
		case r.URL.Query().Has("watch"):
			_ = http.NewResponseController(w).Flush()
			if isSecret {
				watches <- struct{}{}
			}
			select {
			case <-loseConnection:
				if !isSecret {
					resetConnection(t, r)
					return
				}
				<-r.Context().Done()
			case <-r.Context().Done():
			}
		default:
			fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`)
		}
	})
	r := newRecorder()
	cfg := watch.Config{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap", "secret"}}, r, cfg, nil)
	r.await(t, "both feeds to be live", func() bool {
		return r.state(configMapFeed) == vedette.FeedLive && r.state(secretFeed) == vedette.FeedLive
	})
	<-watches
	close(loseConnection)
	select {
	case <-watches:
	case <-time.After(time.Minute):
		t.Error("got no new watch of Secrets, want one over a new connection")
	}
}

// resetConnection ends the connection of a request with a TCP RST, unless it has ended already: the
// client closes connections too, and requests of one connection end together.
func resetConnection(t *testing.T, r *http.Request) {
	conn, _ := kubetest.Conn(r)
	raw := conn.(*tls.Conn).NetConn()
	if err := raw.(*net.TCPConn).SetLinger(0); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	raw.Close()
}
