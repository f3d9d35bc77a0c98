package connlimit_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/connlimit"
)

// world is a server whose handler waits for /wait, and clients of several addresses.
type world struct {
	*testing.T
	address string
	wait    chan struct{}
	entered chan struct{}
}

func newWorld(t *testing.T, cfg connlimit.Config) *world {
	w := &world{T: t, wait: make(chan struct{}), entered: make(chan struct{}, 100)}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Log = slog.New(slog.DiscardHandler)
	cfg.Reject = func(w http.ResponseWriter, _ *http.Request, message string) {
		http.Error(w, message, http.StatusServiceUnavailable)
	}
	listener := connlimit.New(inner, cfg)
	srv := &http.Server{ConnContext: listener.ConnContext, MaxHeaderBytes: 128 << 10, Handler: listener.Handler(http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				w.entered <- struct{}{}
				<-w.wait
			}
		}))}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		<-ended
	})
	w.address = inner.Addr().String()
	return w
}

type client struct {
	*world
	net.Conn
	in *bufio.Reader
}

// dial connects from an address of the loopback network.
func (w *world) dial(from string) client {
	w.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: time.Minute}).Dial("tcp", w.address)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close() })
	return client{w, conn, bufio.NewReader(conn)}
}

func (c client) send(path, header string) {
	c.Helper()
	if _, err := fmt.Fprintf(c.Conn, "GET %s HTTP/1.1\r\nHost: a\r\n%s\r\n", path, header); err != nil {
		c.Fatal(err)
	}
}

func (c client) want(status int, words string) {
	c.Helper()
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.Errorf("got %v, want %d", err, status)
		return
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != status || !strings.Contains(string(body), words) {
		c.Errorf("got %d %s, want %d and %q", response.StatusCode, body, status, words)
	}
}

func TestAddressHasAShareOfConnections(t *testing.T) {
	w := newWorld(t, connlimit.Config{Connections: 4})
	connect := func(from string) client {
		c := w.dial(from)
		c.send("/", "")
		c.want(200, "")
		return c
	}
	first := []client{connect("127.0.0.1"), connect("127.0.0.1")}
	third := w.dial("127.0.0.1")
	third.send("/", "")
	third.want(503, "this address has 2 connections already")
	if _, err := third.in.ReadByte(); err != io.EOF {
		t.Errorf("got %v, want that the connection is closed", err)
	}
	var second []client
	for range 2 {
		c := connect("127.0.0.2")
		c.send("/wait", "")
		<-w.entered
		second = append(second, c)
	}
	other := connect("127.0.0.3") // one of the first ends for it
	ended := make(chan int, 2)
	for i, c := range first {
		go func() {
			if _, err := c.in.Peek(1); err != nil { // that of the other one ends with the test
				ended <- i
			}
		}()
	}
	kept := first[1-<-ended]
	for _, c := range []client{kept, other} {
		c.send("/wait", "")
		<-w.entered
	}
	none := w.dial("127.0.0.4")
	none.send("/", "")
	none.want(503, "all 4 connections of this server are in use")
	close(w.wait)
	for _, c := range second { // one of which ends for it, once it has its answer
		c.want(200, "")
	}
	connect("127.0.0.4")
}

// TestLargeHeadersWaitForMemory lets large headers arrive while there is memory for one of them.
func TestLargeHeadersWaitForMemory(t *testing.T) {
	large := "X-Large: " + strings.Repeat("x", 60<<10) + "\r\n"
	w := newWorld(t, connlimit.Config{HeaderBytes: 1 << 19, HeaderWait: time.Minute})
	slow, other, small := w.dial("127.0.0.1"), w.dial("127.0.0.1"), w.dial("127.0.0.1")
	slow.send("/wait", large)
	<-w.entered
	other.send("/", large)
	small.send("/", "")
	small.want(200, "")
	foreign := w.dial("127.0.0.2")
	foreign.send("/", large)
	foreign.want(200, "")
	close(w.wait) // only now there is memory for the other one
	slow.want(200, "")
	other.want(200, "")
	other.send("/", large)
	other.want(200, "")
}

func TestHeadersThatFindNoMemory(t *testing.T) {
	large := "X-Large: " + strings.Repeat("x", 60<<10) + "\r\n"
	w := newWorld(t, connlimit.Config{HeaderBytes: 1 << 19, HeaderWait: time.Millisecond})
	slow, other := w.dial("127.0.0.1"), w.dial("127.0.0.1")
	slow.send("/wait", large)
	<-w.entered
	other.send("/", large)
	if response, err := http.ReadResponse(other.in, nil); err == nil && response.StatusCode != http.StatusBadRequest { // or a reset
		t.Errorf("got %d, want 400", response.StatusCode)
	}
	close(w.wait)
	slow.want(200, "")
}
