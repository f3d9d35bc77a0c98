package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/readtest"
)

// screen is what a command has printed, for those who wait for it.
type screen struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{}
}

func newScreen() *screen { return &screen{wrote: make(chan struct{}, 1)} }

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
	select {
	case s.wrote <- struct{}{}:
	default:
	}
	return len(b), nil
}

// lines returns the first n lines, in which runs of spaces are one.
func (s *screen) lines(t *testing.T, n int) []string {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		s.mu.Lock()
		text := strings.TrimRight(s.text.String(), "\n")
		s.mu.Unlock()
		lines := strings.Split(text, "\n")
		if text != "" && len(lines) >= n {
			for i := range lines {
				lines[i] = strings.Join(strings.Fields(lines[i]), " ")
			}
			return lines
		}
		select {
		case <-s.wrote:
		case <-deadline:
			t.Fatalf("%d lines were printed, want %d:\n%s", len(lines), n, strings.Join(lines, "\n"))
		}
	}
}

// watch runs a command until the test ends, and holds that it ends well.
func follow(t *testing.T, args ...string) (out, errOut *screen) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, errOut = newScreen(), newScreen()
	ended := make(chan error, 1)
	go func() {
		root := newRoot()
		root.SetArgs(args)
		root.SetOut(out)
		root.SetErr(errOut)
		ended <- root.ExecuteContext(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("interrupted, it ended with %v", err)
		}
	})
	return out, errOut
}

var web = vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "shop", Name: "web-6c9f4-aaaaa"}

func TestWatch(t *testing.T) {
	w := shop(t)
	server := httptest.NewServer(api.New(api.Config{Store: w.Store, Hub: w.Hub, Fleet: w.Fleet}))
	t.Cleanup(server.Close)
	out, errOut := follow(t, "get", "pods", "--account", "prod-1", "-w", "--server", server.URL)
	want := []string{
		"ACCOUNT NAMESPACE NAME READY STATUS RESTARTS AGE",
		"prod-1 billing invoice-0 1/1 Running 0 5d2h",
		"prod-1 shop broken-0 0/1 CrashLoopBackOff 12 (12m ago) 3h30m",
		"prod-1 shop web-6c9f4-aaaaa 1/1 Running 0 5d2h",
	}
	expect := func(more ...string) {
		t.Helper()
		want = append(want, more...)
		if got := out.lines(t, len(want)); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	expect()
	w.Put("prod-1", readtest.Pod("shop", "broken-0", "web"))
	expect("prod-1 shop broken-0 1/1 Running 0 5d2h")
	w.Delete("prod-1", web)
	expect("prod-1 shop web-6c9f4-aaaaa 1/1 <deleted> 0 5d2h")

	// What happens while the stream is broken is told after it, and nothing else.
	server.CloseClientConnections()
	w.Put("prod-1", readtest.CrashingPod("shop", "broken-0"))
	w.Delete("prod-1", vedette.Key{Kind: web.Kind, Namespace: "billing", Name: "invoice-0"})
	expect("prod-1 shop broken-0 0/1 CrashLoopBackOff 12 (12m ago) 3h30m", "prod-1 billing invoice-0 1/1 <deleted> 0 5d2h")
	if got := errOut.lines(t, 1); !strings.Contains(got[0], "trying again") {
		t.Errorf("error output %q", got)
	}
}

func TestWatchOtherOutputs(t *testing.T) {
	w := shop(t)
	server := serve(t, w)
	names, _ := follow(t, "get", "pods", "--account", "dev", "-w", "-o", "name", "--server", server)
	manifests, _ := follow(t, "get", "pods", "--account", "dev", "-w", "-o", "yaml", "--server", server)
	names.lines(t, 1)
	manifests.lines(t, 10)
	w.Put("dev", readtest.Pod("shop", "web-1", "web"))
	if got := names.lines(t, 2); got[1] != "dev/Pod/shop/web-1" {
		t.Errorf("names %q", got)
	}
	count := func() int { return strings.Count(strings.Join(manifests.lines(t, 10), "\n"), "---\n") }
	for deadline := time.Now().Add(20 * time.Second); count() < 2; <-manifests.wrote {
		if time.Now().After(deadline) {
			t.Fatal("no second document")
		}
	}
}

func TestWatchRefused(t *testing.T) {
	server := serve(t, shop(t))
	for _, tt := range []struct{ why, args, want string }{
		{"two kinds", "get pods,nodes -w", "one at a time can be watched"},
		{"a kind that is not there", "get pds -w", "did you mean pods"},
		{"an account that is not there", "get pods --account nope -w", "there is no account"},
	} {
		if _, _, err := run(t.Context(), append(strings.Fields(tt.args), "--server", server)...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.want)
		}
	}
}
