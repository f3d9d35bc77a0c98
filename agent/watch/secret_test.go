//go:build linux

package watch_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch"
)

// TestMain is the child of TestSecretsLeaveNoTraceInMemory where it is told to.
func TestMain(m *testing.M) {
	if kind := os.Getenv("VEDETTE_TEST_WATCH_KIND"); kind != "" {
		follow(os.Getenv("VEDETTE_TEST_KUBECONFIG"), kind)
		return
	}
	os.Exit(m.Run())
}

// follow watches one kind until standard input ends, and says what it sees
// without keeping it.
func follow(kubeconfig, kind string) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	c, err := watch.Connect(watch.Access{KubeconfigFile: kubeconfig}, watch.Options{})
	if err != nil {
		fmt.Println("failed", err)
		return
	}
	err = watch.NewWatcher(c, watch.Selection{Kinds: []string{kind}}, &teller{}, watch.Config{Log: slog.New(slog.DiscardHandler)}).Run(ctx, nil)
	fmt.Println("ended", err)
}

// teller prints how many objects came, and whether the feed is live.
type teller struct{ items, upserts int }

func (s *teller) Put(ctx context.Context, e watch.Event) error {
	switch e.Type {
	case watch.Item:
		s.items++
	case watch.Upsert:
		s.upserts++
		fmt.Println("upserts", s.upserts)
	case watch.Status:
		if e.State == vedette.FeedLive {
			fmt.Println("live", s.items)
		} else {
			fmt.Println("status", e.State, e.Message)
		}
	}
	return ctx.Err()
}

// TestSecretsLeaveNoTraceInMemory reads all of the memory of a process that
// follows Secrets whose data stands in kubectl's annotation too. The same with
// ConfigMaps shows that the search would find it.
func TestSecretsLeaveNoTraceInMemory(t *testing.T) {
	p := plane(t)
	canary := "canary-" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-in-a-coal-mine"
	make := func(i int) object {
		data := object{"password": base64.StdEncoding.EncodeToString([]byte(canary))}
		padding := strings.Repeat(canary+" ", 1+i*i%700)
		return object{"metadata": object{"name": fmt.Sprintf("s%d", i), "annotations": object{
			"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"` + padding + `"}}`}}, "data": data}
	}
	for kind, found := range map[string]bool{"secret": false, "configmap": true} {
		path := "/api/v1/namespaces/default/" + kind + "s"
		for i := range 60 {
			must(t, p.Create(t.Context(), path, make(i)))
		}
		child := startChild(t, p.Kubeconfig(), kind)
		child.await(t, "live")
		for i := range 30 {
			must(t, p.Patch(t.Context(), fmt.Sprintf("%s/s%d", path, i), object{"metadata": object{"labels": object{"round": "2"}}}))
		}
		child.await(t, "upserts 30")
		n, scanned := child.search(t, canary)
		t.Logf("%s: found %d times in %d MiB", kind, n, scanned>>20)
		if found != (n > 0) {
			t.Errorf("%s: found %d times, want some: %v", kind, n, found)
		}
		if scanned < 10<<20 {
			t.Errorf("only %d bytes were searched", scanned)
		}
		child.in.Close()
		child.await(t, "ended")
	}
}

type child struct {
	pid   int
	in    io.WriteCloser
	lines chan string
}

func startChild(t *testing.T, kubeconfig, kind string) *child {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "VEDETTE_TEST_WATCH_KIND="+kind, "VEDETTE_TEST_KUBECONFIG="+kubeconfig)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	c := &child{pid: cmd.Process.Pid, in: in, lines: make(chan string, 1000)}
	go func() {
		defer close(c.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return c
}

func (c *child) await(t *testing.T, prefix string) {
	t.Helper()
	var seen []string
	deadline := time.After(30 * time.Second)
	for {
		select {
		case line, ok := <-c.lines:
			if seen = append(seen, line); strings.HasPrefix(line, prefix) {
				return
			}
			if !ok {
				t.Fatalf("the child ended before %q: %q", prefix, seen)
			}
		case <-deadline:
			t.Fatalf("waited for %q: %q", prefix, seen)
		}
	}
}

// search counts a text in all memory that the process can write.
func (c *child) search(t *testing.T, text string) (n, scanned int) {
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
			got, _ := mem.ReadAt(b, at) // untouched parts of a mapping can't be read
			n += bytes.Count(b[:got], []byte(text))
			scanned += got
		}
	}
	return n, scanned
}
