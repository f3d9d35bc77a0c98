package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
)

// interruptedServer has 50 accounts. It answers the first operations, and holds the next ones until a
// test has interrupted the command.
type interruptedServer struct {
	answered, held int // numbers of operations
	late           int // how many of the held ones are answered after the interruption
	interrupt      context.CancelFunc

	mu       sync.Mutex
	received map[string]string // operation by account
	released chan struct{}
}

// execute answers an operation.
func (s *interruptedServer) execute(w http.ResponseWriter, r *http.Request, op receivedOperation) {
	if op.Verb == string(vedette.VerbGet) { // commands read what they patch
		_, _ = io.WriteString(w, `{"state":"done","status":200,"objects":[{"kind":"Deployment","metadata":{"name":"web","uid":"1","resourceVersion":"1"},`+
			`"spec":{"template":{"spec":{"containers":[{"name":"main","image":"web:1"}]}}}}]}`)
		return
	}
	s.mu.Lock()
	s.received[op.Account] = op.ID
	n := len(s.received)
	s.mu.Unlock()
	if n == s.answered+s.held {
		s.interrupt()
		close(s.released)
	}
	if n > s.answered {
		<-s.released
	}
	if n > s.answered+s.late {
		<-r.Context().Done()
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"id": op.ID, "account": op.Account, "state": "done", "status": 200})
}

func (s *interruptedServer) serve(t *testing.T) (url string) {
	return serveOperations(t, numberedAccounts(50), s.execute)
}

// TestInterruptedCommandsSayHowFarTheyCame interrupts commands that change objects in 50 accounts, and
// checks that each account is named once, with what is known about it.
func TestInterruptedCommandsSayHowFarTheyCame(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "web.yaml")
	text := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n"
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		command string
		late    int
	}{
		{"apply -f " + manifest, 0},
		{"apply -f " + manifest, 8},
		{"apply -f " + manifest, 3},
		{"delete deployment web -n shop", 0},
		{"delete -f " + manifest, 1},
		{"scale deployment web -n shop --replicas 3", 0},
		{"patch deployment web -n shop -p {\"spec\":{}}", 8},
		{"label deployment web -n shop a=b", 3},
		{"annotate deployment web -n shop a=b", 0},
		{"set image deployment web -n shop main=web:2", 1},
		{"create -f " + manifest, 0},
		{"replace -f " + manifest, 2},
		{"rollout restart deployment web -n shop", 0},
		{"rollout undo deployment web -n shop", 0},
		{"rollout pause deployment web -n shop", 0},
	} {
		t.Run(fmt.Sprintf("%s, %d late", strings.ReplaceAll(tt.command, manifest, "FILE"), tt.late), func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			s := &interruptedServer{answered: 16, held: 8, late: tt.late, interrupt: interrupt, received: map[string]string{}, released: make(chan struct{})}
			_, errOut, err := runCLI(ctx, append(strings.Fields(tt.command), "--account", "*", "--server", s.serve(t))...)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v, want %v, which exits with 130", err, context.Canceled)
			}
			known := s.answered + s.late
			want := fmt.Sprintf("%d done, %d unknown, 26 not begun", known, s.held-s.late)
			if s.late == s.held {
				want = fmt.Sprintf("%d done, 26 not begun", known)
			}
			if !strings.Contains(errOut, want) {
				t.Errorf("got %s\nwant %q", errOut, want)
			}
			s.checkNames(t, errOut)
		})
	}
}

// TestMain runs the command itself if a test has started this program as a process.
func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const asCommand = "VEDETTE_TEST_AS_COMMAND"

// TestSignalInterruptsCommand interrupts a process by the signal of Ctrl-C.
func TestSignalInterruptsCommand(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan *os.Process, 1)
	interrupt := func() {
		if err := (<-started).Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
	}
	s := &interruptedServer{answered: 16, held: 8, interrupt: interrupt, received: map[string]string{}, released: make(chan struct{})}
	var errOut strings.Builder
	command := exec.CommandContext(t.Context(), program, "scale", "deployment", "web", "-n", "shop", "--replicas", "3", "--account", "*",
		"--server", s.serve(t))
	command.Env, command.Stderr = append(os.Environ(), asCommand+"=1"), &errOut
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	started <- command.Process
	err = command.Wait()
	if command.ProcessState.ExitCode() != 130 {
		t.Errorf("got %v, want the exit code 130", err)
	}
	if want := "16 done, 8 unknown, 26 not begun"; !strings.Contains(errOut.String(), want) {
		t.Errorf("got %s\nwant %q", errOut.String(), want)
	}
	s.checkNames(t, errOut.String())
}

var (
	stateLine   = regexp.MustCompile(`(?m)^(done|unknown|not begun): (.*)$`)
	unknownLine = regexp.MustCompile(`(?m)^  (a\d+): .* see .vedette ops get (\w+).$`)
)

// checkNames checks that the accounts that were sent something are those that are done or unknown, and
// that unknown ones have the ids of their operations.
func (s *interruptedServer) checkNames(t *testing.T, errOut string) {
	t.Helper()
	named := map[string]string{}
	for _, line := range stateLine.FindAllStringSubmatch(errOut, -1) {
		for account := range strings.SplitSeq(line[2], ",") {
			if named[account] != "" {
				t.Errorf("%s is named twice", account)
			}
			named[account] = line[1]
		}
	}
	if len(named) != 50 {
		t.Errorf("got %d accounts, want 50: %s", len(named), errOut)
	}
	for account, state := range named {
		if _, sent := s.received[account]; sent != (state != "not begun") {
			t.Errorf("%s: got %s, sent %v", account, state, sent)
		}
	}
	for _, line := range unknownLine.FindAllStringSubmatch(errOut, -1) {
		if s.received[line[1]] != line[2] {
			t.Errorf("%s: got the operation %s, want %s", line[1], line[2], s.received[line[1]])
		}
		delete(named, line[1])
	}
	for account, state := range named {
		if state == "unknown" {
			t.Errorf("%s has no operation to look up", account)
		}
	}
}

// TestWaitsAreInterrupted interrupts an apply that waits for rollouts: what was applied is incomplete,
// and what was only read is not begun.
func TestWaitsAreInterrupted(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "web.yaml")
	text := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n"
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	url := serveOperations(t, []string{"one", "two"}, func(w http.ResponseWriter, r *http.Request, op receivedOperation) {
		switch {
		case op.Verb == string(vedette.VerbApply):
			_, _ = fmt.Fprintf(w, `{"id":%q,"account":%q,"state":"done","status":200}`, op.ID, op.Account)
		case op.Account == "one":
			_, _ = w.Write([]byte(`{"state":"done","status":200,"result":{"done":true,"message":"rolled out"}}`))
		default:
			interrupt()
			<-r.Context().Done()
		}
	})
	_, errOut, err := runCLI(ctx, "apply", "-f", manifest, "--wait", "--account", "*", "--server", url)
	if !errors.Is(err, context.Canceled) || !strings.Contains(errOut, "incomplete: ") || !strings.Contains(errOut, "two") {
		t.Errorf("got %q, %v", errOut, err)
	}
}

// TestUnreachableServerLeavesUnknownOutcomes checks that the end of a server is reported as an
// interruption is: what was sent may have taken effect.
func TestUnreachableServerLeavesUnknownOutcomes(t *testing.T) {
	url := serveOperations(t, []string{"one"}, func(w http.ResponseWriter, _ *http.Request, _ receivedOperation) {
		w.WriteHeader(http.StatusBadGateway)
	})
	_, errOut, err := runCLI(t.Context(), "scale", "deployment", "web", "--replicas", "1", "--account", "*", "--server", url)
	if err == nil || !regexp.MustCompile(`(?s)1 unknown.*one: scale .* see .vedette ops get \w{26}`).MatchString(errOut) {
		t.Errorf("got %q, %v", errOut, err)
	}
}
