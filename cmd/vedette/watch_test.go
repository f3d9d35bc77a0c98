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

// outputBuffer is the output of a command that is running. Tests can wait for its lines.
type outputBuffer struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{}
}

func newOutputBuffer() *outputBuffer { return &outputBuffer{written: make(chan struct{}, 1)} }

func (s *outputBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
	select {
	case s.written <- struct{}{}:
	default:
	}
	return len(b), nil
}

// lines waits for n lines and returns all lines, with runs of spaces replaced by one space.
func (s *outputBuffer) lines(t *testing.T, n int) []string {
	t.Helper()
	deadline := time.After(time.Minute)
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
		case <-s.written:
		case <-deadline:
			t.Fatalf("got %d lines, want %d:\n%s", len(lines), n, strings.Join(lines, "\n"))
		}
	}
}

// startCommand runs a command until the test ends, and checks that the interrupt is not an
// error.
func startCommand(t *testing.T, args ...string) (out, errOut *outputBuffer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, errOut = newOutputBuffer(), newOutputBuffer()
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
			t.Errorf("got error %v after the interrupt, want none", err)
		}
	})
	return out, errOut
}

var webPod = vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "shop", Name: "web-6c9f4-aaaaa"}

func TestWatch(t *testing.T) {
	w := newShopWorld(t)
	server := httptest.NewServer(api.New(api.Config{Store: w.Store, Hub: w.Hub, Fleet: w.Fleet, StaleAfter: time.Hour}))
	t.Cleanup(server.Close)
	out, errOut := startCommand(t, "get", "pods", "--account", "prod-1", "-w", "--server", server.URL)
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
	w.Delete("prod-1", webPod)
	expect("prod-1 shop web-6c9f4-aaaaa 1/1 <deleted> 0 5d2h")

	// After a broken stream only the changes in between are printed.
	server.CloseClientConnections()
	w.Put("prod-1", readtest.CrashingPod("shop", "broken-0"))
	w.Delete("prod-1", vedette.Key{Kind: webPod.Kind, Namespace: "billing", Name: "invoice-0"})
	expect("prod-1 shop broken-0 0/1 CrashLoopBackOff 12 (12m ago) 3h30m", "prod-1 billing invoice-0 1/1 <deleted> 0 5d2h")
	if got := errOut.lines(t, 1); !strings.Contains(got[0], "retrying") {
		t.Errorf("got error output %q, want a retry", got)
	}
}

func TestWatchNameAndYAMLOutput(t *testing.T) {
	w := newShopWorld(t)
	server := serve(t, w)
	names, _ := startCommand(t, "get", "pods", "--account", "dev", "-w", "-o", "name", "--server", server)
	manifests, _ := startCommand(t, "get", "pods", "--account", "dev", "-w", "-o", "yaml", "--server", server)
	names.lines(t, 1)
	manifests.lines(t, 10)
	w.Put("dev", readtest.Pod("shop", "web-1", "web"))
	if got := names.lines(t, 2); got[1] != "dev/Pod/shop/web-1" {
		t.Errorf("got names %q", got)
	}
	count := func() int { return strings.Count(strings.Join(manifests.lines(t, 10), "\n"), "---\n") }
	for deadline := time.Now().Add(time.Minute); count() < 2; <-manifests.written {
		if time.Now().After(deadline) {
			t.Fatal("got one document, want two")
		}
	}
}

func TestWatchRejectsInvalidRequests(t *testing.T) {
	server := serve(t, newShopWorld(t))
	for _, tt := range []struct{ name, args, want string }{
		{"two kinds", "get pods,nodes -w", "accepts one kind or name"},
		{"an unknown kind", "get pds -w", "did you mean pods"},
		{"an unknown account", "get pods --account nope -w", "there is no account"},
	} {
		if _, _, err := runCLI(t.Context(), append(strings.Fields(tt.args), "--server", server)...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want %q", tt.name, err, tt.want)
		}
	}
}
