package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/tcpserver"
)

// echo starts a server that echoes each line, and returns its address.
func echo(t *testing.T) string {
	t.Helper()
	return tcpserver.New(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
}

type echoClient struct {
	t *testing.T
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, p *Proxy) *echoClient {
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &echoClient{t, conn, bufio.NewReader(conn)}
}

// wantRefused opens a connection that must be reset before it echoes. The reset may come while the
// connection is being opened.
func wantRefused(t *testing.T, p *Proxy) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		return
	}
	defer conn.Close()
	c := &echoClient{t, conn, bufio.NewReader(conn)}
	if err := c.expectEcho("hello", longTimeout); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("refused connection: got %v, want EOF or a reset", err)
	}
}

// expectEcho sends a line and expects it back.
func (c *echoClient) expectEcho(line string, timeout time.Duration) error {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return err
	}
	return c.expectLine(line, timeout)
}

func (c *echoClient) expectLine(line string, timeout time.Duration) error {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	got, err := c.lines.ReadString('\n')
	if err == nil && got != line+"\n" {
		c.t.Fatalf("got %q, want %q", got, line)
	}
	return err
}

const longTimeout, shortTimeout = time.Minute, 100 * time.Millisecond

func TestDataIsForwardedBothWays(t *testing.T) {
	c := dial(t, New(t, echo(t)))
	for _, line := range []string{"one", "two"} {
		if err := c.expectEcho(line, longTimeout); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCutResetsConnections(t *testing.T) {
	p := New(t, echo(t))
	c := dial(t, p)
	if err := c.expectEcho("before", longTimeout); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if err := c.expectLine("after", longTimeout); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after Cut: got %v, want a reset", err)
	}
	if err := dial(t, p).expectEcho("anew", longTimeout); err != nil {
		t.Error(err)
	}
}

func TestConnectionsAreRefusedUntilHealed(t *testing.T) {
	p := New(t, echo(t))
	p.Refuse()
	wantRefused(t, p)
	p.Heal()
	if err := dial(t, p).expectEcho("hello", longTimeout); err != nil {
		t.Error(err)
	}
}

func TestFrozenDirectionIsHeldBack(t *testing.T) {
	for _, d := range []Direction{Up, Down} {
		p := New(t, echo(t))
		c := dial(t, p)
		if err := c.expectEcho("before", longTimeout); err != nil {
			t.Fatal(err)
		}
		p.Freeze(d)
		if err := c.expectEcho("held", shortTimeout); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("frozen direction %d: got %v, want a timeout", d, err)
		}
		p.Heal()
		if err := c.expectLine("held", longTimeout); err != nil {
			t.Errorf("healed direction %d: got %v", d, err)
		}
	}
}

func TestOldConnectionsAreBlackholed(t *testing.T) {
	p := New(t, echo(t))
	c := dial(t, p)
	if err := c.expectEcho("before", longTimeout); err != nil {
		t.Fatal(err)
	}
	p.Blackhole()
	if err := c.expectEcho("lost", shortTimeout); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("blackholed connection: got %v, want a timeout", err)
	}
	if err := dial(t, p).expectEcho("anew", longTimeout); err != nil {
		t.Error(err)
	}
}

func TestHoldOnText(t *testing.T) {
	p := New(t, echo(t))
	c, other := dial(t, p), dial(t, p)
	triggered := p.HoldOnText("Halt")
	if err := c.expectEcho("go", longTimeout); err != nil {
		t.Fatal(err)
	}
	if err := c.expectEcho("HALT now", shortTimeout); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("held connection: got %v, want a timeout", err)
	}
	<-triggered
	if err := other.expectEcho("halt", longTimeout); err != nil {
		t.Errorf("another connection: got %v", err)
	}
	p.Heal()
	if err := c.expectLine("HALT now", longTimeout); err != nil {
		t.Error(err)
	}
}

func TestSlowDelaysEachWay(t *testing.T) {
	p := New(t, echo(t))
	p.Slow(shortTimeout)
	c := dial(t, p)
	began := time.Now()
	if err := c.expectEcho("slow", longTimeout); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*shortTimeout {
		t.Errorf("got a round trip of %v, want %v each way", took, shortTimeout)
	}
}

// TestLatencyDoesNotAddUp sends many pieces at once. Each must be late, but unlike with Slow none must wait
// for the one before.
func TestLatencyDoesNotAddUp(t *testing.T) {
	p := New(t, echo(t))
	p.AddLatency(shortTimeout)
	c := dial(t, p)
	began := time.Now()
	for range 50 {
		if _, err := io.WriteString(c, "late\n"); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		if err := c.expectLine("late", longTimeout); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took < 2*shortTimeout {
		t.Errorf("got a round trip of %v, want %v each way", took, shortTimeout)
	}
}

func TestLimitBoundsTheRate(t *testing.T) {
	p := New(t, echo(t))
	p.Limit(100 << 10)
	c := dial(t, p)
	line := strings.Repeat("x", 20<<10)
	began := time.Now()
	if err := c.expectEcho(line, longTimeout); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("20 KiB at 100 KiB/s: took %v", took)
	}
}

func TestStreamStallsAfterSomeBytes(t *testing.T) {
	p := New(t, echo(t))
	c := dial(t, p)
	if err := c.expectEcho("before", longTimeout); err != nil {
		t.Fatal(err)
	}
	p.StallAfter(Down, 3)
	if _, err := io.WriteString(c, "half\n"); err != nil {
		t.Fatal(err)
	}
	half := make([]byte, 3)
	if _, err := io.ReadFull(c.lines, half); err != nil || string(half) != "hal" {
		t.Fatalf("got %q, error %v", half, err)
	}
	if err := c.expectLine("f", shortTimeout); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("stalled response: got %v, want a timeout", err)
	}
	p.Heal()
	if err := c.expectLine("f", longTimeout); err != nil {
		t.Error(err)
	}
}

func TestUnreachableTargetRefuses(t *testing.T) {
	p := New(t, ports.Unused(t))
	wantRefused(t, p) // no program listens at the target
	p.SetTarget(echo(t))
	if err := dial(t, p).expectEcho("hello", longTimeout); err != nil {
		t.Error(err)
	}
	if n := p.Accepted(); n != 2 {
		t.Errorf("got %d connections, want 2", n)
	}
}
