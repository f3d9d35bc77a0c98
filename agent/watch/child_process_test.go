//go:build linux

package watch_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/agent/watch/queue"
)

// TestMain runs watchInChild if the environment asks for it, for tests that inspect a
// process from outside.
func TestMain(m *testing.M) {
	if kinds := os.Getenv("VEDETTE_TEST_WATCH_KIND"); kinds != "" {
		accounts, _ := strconv.Atoi(os.Getenv("VEDETTE_TEST_ACCOUNTS"))
		watchInChild(os.Getenv("VEDETTE_TEST_KUBECONFIG"), strings.Split(kinds, ","), max(1, accounts))
		return
	}
	os.Exit(m.Run())
}

// watchInChild watches kinds for a number of accounts until standard input ends. It prints
// the number of events and keeps none of them.
func watchInChild(kubeconfig string, kinds []string, accounts int) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	cfg := watch.Config{Log: slog.New(slog.DiscardHandler), Limiter: watch.NewLimiter(queue.Budget{})}
	sink := &printingSink{}
	var watchers sync.WaitGroup
	for range accounts {
		c, err := kube.Connect(kube.Access{KubeconfigFile: kubeconfig}, kube.Options{WipeTLSBuffers: true})
		if err != nil {
			fmt.Println("failed", err)
			return
		}
		watchers.Go(func() {
			fmt.Println("ended", watch.NewWatcher(c, watch.Selection{Kinds: kinds}, sink, cfg).Run(ctx, nil))
		})
	}
	watchers.Wait()
}

// printingSink prints the number of upserts and of live feeds.
type printingSink struct {
	mu                   sync.Mutex
	items, upserts, live int
}

func (s *printingSink) Put(ctx context.Context, e watch.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Type {
	case watch.Item:
		s.items++
	case watch.Upsert:
		s.upserts++
		fmt.Println("upserts", s.upserts)
	case watch.Status:
		if e.State == vedette.FeedLive {
			s.live++
			fmt.Println("live", s.live, s.items)
		}
	}
	return ctx.Err()
}

type childProcess struct {
	pid   int
	stdin io.WriteCloser
	lines chan string
}

func startChild(t testing.TB, kubeconfig, kinds string, accounts int) *childProcess {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "VEDETTE_TEST_WATCH_KIND="+kinds, fmt.Sprintf("VEDETTE_TEST_ACCOUNTS=%d", accounts), "VEDETTE_TEST_KUBECONFIG="+kubeconfig)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	c := &childProcess{pid: cmd.Process.Pid, stdin: stdin, lines: make(chan string, 10000)}
	go func() {
		defer close(c.lines)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			c.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return c
}

func (c *childProcess) await(t testing.TB, prefix string) {
	t.Helper()
	var seen []string
	deadline := time.After(5 * time.Minute) // a hundred accounts take a while on a busy machine
	for {
		select {
		case line, ok := <-c.lines:
			seen = append(seen, line)
			if strings.HasPrefix(line, prefix) {
				return
			}
			if !ok {
				t.Fatalf("child ended before it printed %q: %q", prefix, seen)
			}
		case <-deadline:
			t.Fatalf("timed out waiting for %q: %q", prefix, seen)
		}
	}
}

// countInMemory counts the occurrences of a text in the writable memory of the process.
func (c *childProcess) countInMemory(t testing.TB, text string) (n, scanned int) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", c.pid))
	must(t, err)
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", c.pid))
	must(t, err)
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil || !strings.HasPrefix(rights, "rw") {
			continue
		}
		const step = 16 << 20
		for at := from; at < to; at += step {
			b := make([]byte, min(to-at+int64(len(text)), step+int64(len(text))))
			got, _ := mem.ReadAt(b, at) // untouched parts of a mapping cannot be read
			n += bytes.Count(b[:got], []byte(text))
			scanned += got
		}
	}
	return n, scanned
}

// memory returns VmRSS or VmHWM of /proc/pid/status in MiB.
func (c *childProcess) memory(t testing.TB, name string) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid))
	must(t, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			must(t, err)
			return kib >> 10
		}
	}
	t.Fatalf("the child's status has no %s", name)
	return 0
}
