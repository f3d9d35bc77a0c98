package main

import (
	"bytes"
	"context"
	"fmt"
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
	return s.await(t, fmt.Sprintf("%d lines", n), func(lines []string) bool { return len(lines) >= n })
}

// contains waits until a text is in the output.
func (s *outputBuffer) contains(t *testing.T, text string) {
	t.Helper()
	s.await(t, text, func(lines []string) bool { return strings.Contains(strings.Join(lines, "\n"), text) })
}

// await waits until all lines satisfy a condition, and returns them.
func (s *outputBuffer) await(t *testing.T, what string, satisfied func(lines []string) bool) []string {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		s.mu.Lock()
		text := strings.TrimRight(s.text.String(), "\n")
		s.mu.Unlock()
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = strings.Join(strings.Fields(lines[i]), " ")
		}
		if text != "" && satisfied(lines) {
			return lines
		}
		select {
		case <-s.written:
		case <-deadline:
			t.Fatalf("got %d lines, want %s:\n%s", len(lines), what, strings.Join(lines, "\n"))
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
		ended <- execute(ctx, root)
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

func TestWatchPrintsChangesAndReconnects(t *testing.T) {
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

// TestWatchFlagsChangeTheOutput checks what the flags of a watch print.
func TestWatchFlagsChangeTheOutput(t *testing.T) {
	w := newShopWorld(t)
	server := serve(t, w)
	watch := func(args string) *outputBuffer {
		out, _ := startCommand(t, append(strings.Fields("get pods --account dev -w --server "+server), strings.Fields(args)...)...)
		return out
	}
	events := watch("--output-watch-events -L app")
	labelled := watch("--output-watch-events -o json")
	selected := watch("--field-selector status.phase=Running --no-headers")
	columns := watch("-o custom-columns=N:.metadata.name,P:.status.phase")
	template := watch(`-o jsonpath={.metadata.name};`)
	for _, out := range []*outputBuffer{events, labelled, selected, columns, template} {
		out.lines(t, 1)
	}
	events.lines(t, 2)
	w.Put("dev", readtest.Pod("shop", "web-1", "web"))
	for _, out := range []*outputBuffer{events, columns} {
		out.lines(t, 3)
	}
	selected.lines(t, 2)
	labelled.contains(t, "web-1") // a deletion of what a watch has not seen is not shown
	pending := strings.Replace(readtest.Pod("shop", "web-1", "web"), `"Running"`, `"Pending"`, 1)
	w.Put("dev", pending)
	w.Delete("dev", vedette.Key{Kind: webPod.Kind, Namespace: "shop", Name: "web-1"})
	for _, tt := range []struct {
		name string
		out  *outputBuffer
		want []string
	}{
		{"events", events, []string{"EVENT ACCOUNT NAMESPACE NAME READY STATUS RESTARTS AGE APP", "ADDED dev shop web-6c9f4-aaaaa 1/1 Running 0 5d2h web",
			"ADDED dev shop web-1 1/1 Running 0 5d2h web"}},
		{"a field selector", selected, []string{"dev shop web-6c9f4-aaaaa 1/1 Running 0 5d2h", "dev shop web-1 1/1 Running 0 5d2h", "dev shop web-1 1/1 <deleted> 0 5d2h"}},
		{"columns", columns, []string{"N P", "web-6c9f4-aaaaa Running", "web-1 Running"}},
	} {
		if got := tt.out.lines(t, len(tt.want)); strings.Join(got[:len(tt.want)], "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
	events.contains(t, "DELETED dev shop web-1")
	labelled.contains(t, `"type": "DELETED"`)
}

// TestWatchOnlyOmitsExistingObjects checks that objects that exist already are not printed. A stream that is ready shows nothing, so an
// object is changed until a change is printed.
func TestWatchOnlyOmitsExistingObjects(t *testing.T) {
	w := newShopWorld(t)
	out, _ := startCommand(t, "get", "pods", "--account", "dev", "--watch-only", "--no-headers", "--server", serve(t, w))
	for deadline := time.After(time.Minute); ; {
		w.Put("dev", readtest.Pod("shop", "web-1", "web"))
		select {
		case <-out.written:
			if all := strings.Join(out.lines(t, 1), "\n"); strings.Contains(all, webPod.Name) {
				t.Errorf("got %s, want no Pod that existed", all)
			}
			return
		case <-deadline:
			t.Fatal("got no change")
		case <-time.After(50 * time.Millisecond):
		}
	}
}
