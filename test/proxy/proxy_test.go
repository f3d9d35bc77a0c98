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
)

// echo answers each line with itself.
func echo(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); _, _ = io.Copy(conn, conn) }()
		}
	}()
	return listener.Addr().String()
}

type caller struct {
	t *testing.T
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, p *Proxy) *caller {
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &caller{t, conn, bufio.NewReader(conn)}
}

// refused opens a connection that must end before it answers. The reset may
// come while it is being opened.
func refused(t *testing.T, p *Proxy) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		return
	}
	defer conn.Close()
	c := &caller{t, conn, bufio.NewReader(conn)}
	if err := c.ask("hello", long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a refused connection: %v, and an end was due", err)
	}
}

// ask sends a line and waits for its echo.
func (c *caller) ask(line string, patience time.Duration) error {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return err
	}
	return c.hear(line, patience)
}

func (c *caller) hear(line string, patience time.Duration) error {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	got, err := c.lines.ReadString('\n')
	if err == nil && got != line+"\n" {
		c.t.Fatalf("heard %q where %q was sent", got, line)
	}
	return err
}

const long, brief = 10 * time.Second, 100 * time.Millisecond

func TestForward(t *testing.T) {
	c := dial(t, New(t, echo(t)))
	for _, line := range []string{"one", "two"} {
		if err := c.ask(line, long); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCut(t *testing.T) {
	p := New(t, echo(t))
	c := dial(t, p)
	if err := c.ask("before", long); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if err := c.hear("after", long); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the cut: %v, and a reset was due", err)
	}
	if err := dial(t, p).ask("anew", long); err != nil {
		t.Error(err)
	}
}

func TestRefuse(t *testing.T) {
	p := New(t, echo(t))
	p.Refuse()
	refused(t, p)
	p.Heal()
	if err := dial(t, p).ask("hello", long); err != nil {
		t.Error(err)
	}
}

func TestFreeze(t *testing.T) {
	for _, d := range []Direction{Up, Down} {
		p := New(t, echo(t))
		c := dial(t, p)
		if err := c.ask("before", long); err != nil {
			t.Fatal(err)
		}
		p.Freeze(d)
		if err := c.ask("held", brief); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("direction %d is frozen: %v, and silence was due", d, err)
		}
		p.Heal()
		if err := c.hear("held", long); err != nil {
			t.Errorf("direction %d was healed: %v", d, err)
		}
	}
}

func TestStrand(t *testing.T) {
	p := New(t, echo(t))
	c := dial(t, p)
	if err := c.ask("before", long); err != nil {
		t.Fatal(err)
	}
	p.Strand()
	if err := c.ask("lost", brief); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a stranded connection: %v, and silence was due", err)
	}
	if err := dial(t, p).ask("anew", long); err != nil {
		t.Error(err)
	}
}

func TestHoldAt(t *testing.T) {
	p := New(t, echo(t))
	c, other := dial(t, p), dial(t, p)
	sprung := p.HoldAt("Halt")
	if err := c.ask("go", long); err != nil {
		t.Fatal(err)
	}
	if err := c.ask("HALT now", brief); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the piece was to be held: %v, and silence was due", err)
	}
	<-sprung
	if err := other.ask("halt", long); err != nil {
		t.Errorf("another connection: %v", err)
	}
	p.Heal()
	if err := c.hear("HALT now", long); err != nil {
		t.Error(err)
	}
}

func TestSlow(t *testing.T) {
	p := New(t, echo(t))
	p.Slow(brief)
	c := dial(t, p)
	began := time.Now()
	if err := c.ask("slow", long); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*brief {
		t.Errorf("there and back took %v, and each way was to take %v", took, brief)
	}
}

// TestDelay sends many pieces at once: each is late, and none waits for the one
// before it as with Slow.
func TestDelay(t *testing.T) {
	p := New(t, echo(t))
	p.Delay(brief)
	c := dial(t, p)
	began := time.Now()
	for range 50 {
		if _, err := io.WriteString(c, "late\n"); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		if err := c.hear("late", long); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took < 2*brief {
		t.Errorf("there and back took %v, and each way was to take %v", took, brief)
	}
}

func TestLimit(t *testing.T) {
	p := New(t, echo(t))
	p.Limit(100 << 10)
	c := dial(t, p)
	line := strings.Repeat("x", 20<<10)
	began := time.Now()
	if err := c.ask(line, long); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("20 KiB at 100 KiB/s took %v", took)
	}
}

func TestStallAfter(t *testing.T) {
	p := New(t, echo(t))
	c := dial(t, p)
	if err := c.ask("before", long); err != nil {
		t.Fatal(err)
	}
	p.StallAfter(Down, 3)
	if _, err := io.WriteString(c, "half\n"); err != nil {
		t.Fatal(err)
	}
	half := make([]byte, 3)
	if _, err := io.ReadFull(c.lines, half); err != nil || string(half) != "hal" {
		t.Fatalf("read %q, %v", half, err)
	}
	if err := c.hear("f", brief); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the answer was to stall: %v", err)
	}
	p.Heal()
	if err := c.hear("f", long); err != nil {
		t.Error(err)
	}
}

func TestTargetGone(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	p := New(t, listener.Addr().String())
	refused(t, p) // nobody listens at the target
	p.SetTarget(echo(t))
	if err := dial(t, p).ask("hello", long); err != nil {
		t.Error(err)
	}
	if n := p.Accepted(); n != 2 {
		t.Errorf("%d connections were counted and 2 were opened", n)
	}
}
