package middleware_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/middleware"
)

// pipeListener is a listener of connections in memory, which time in a bubble goes for.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error   { close(p.done); return nil }
func (p *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// dial returns a connection to a server of a handler that runs until the test ends.
func dial(t *testing.T, handler http.HandlerFunc) net.Conn {
	l := &pipeListener{make(chan net.Conn), make(chan struct{})}
	srv := &http.Server{Handler: middleware.Deadlines(handler)}
	go func() { _ = srv.Serve(l) }()
	client, server := net.Pipe()
	l.conns <- server
	t.Cleanup(func() { _ = client.Close(); _ = srv.Close() })
	return client
}

// upload answers how much of a body came, and why it ended.
func upload(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if errors.Is(err, middleware.ErrSlowBody) {
		w.WriteHeader(http.StatusRequestTimeout)
	}
	fmt.Fprintf(w, "%d %v", len(b), err)
}

func readResponse(t *testing.T, r *bufio.Reader) (int, string) {
	t.Helper()
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

func TestSlowBodies(t *testing.T) {
	for _, tt := range []struct {
		why          string
		chunk, times int
		every        time.Duration
		code         int
		elapsed      time.Duration
	}{
		{"at once", 100, 1, 0, 200, 0},
		{"a line of 2 KiB a second, for an hour", 40 << 10, 180, 20 * time.Second, 200, 179 * 20 * time.Second},
		{"long after the first half", 2 << 20, 2, 29 * time.Second, 200, 29 * time.Second},
		{"nothing after the first half", 2 << 20, 2, time.Hour, 408, 30 * time.Second},
		{"a byte every ten seconds", 1, 1000, 10 * time.Second, 408, 30 * time.Second},
	} {
		t.Run(tt.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := dial(t, upload)
				start, sent := time.Now(), make(chan struct{})
				go func() {
					defer close(sent)
					fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", tt.chunk*tt.times)
					for i := range tt.times {
						if i > 0 {
							time.Sleep(tt.every)
						}
						if _, err := io.WriteString(conn, strings.Repeat("x", tt.chunk)); err != nil {
							return
						}
					}
				}()
				code, text := readResponse(t, bufio.NewReader(conn))
				if elapsed := time.Since(start).Round(time.Second); code != tt.code || elapsed != tt.elapsed {
					t.Errorf("%d %s after %v, want %d after %v", code, text, elapsed, tt.code, tt.elapsed)
				}
				_ = conn.Close()
				<-sent
			})
		})
	}
}

// TestLongHandlers holds that a handler may take its time once a body is there, and
// that its caller's leaving is still seen then.
func TestLongHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 1)
		conn := dial(t, func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if r.URL.Path == "/left" {
				<-r.Context().Done()
				causes <- context.Cause(r.Context())
				return
			}
			select {
			case <-time.After(time.Hour):
			case <-r.Context().Done():
				t.Error("the request ended by itself")
			}
			fmt.Fprintf(w, "%d %v", len(b), err)
		})
		responses := bufio.NewReader(conn)
		for range 2 { // the second one on the same connection
			go func() { _, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab") }()
			if code, text := readResponse(t, responses); code != 200 || text != "2 <nil>" {
				t.Errorf("%d %s", code, text)
			}
		}
		go func() {
			_, _ = io.WriteString(conn, "POST /left HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab")
			time.Sleep(time.Minute)
			_ = conn.Close()
		}()
		if err := <-causes; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestSlowReaders has readers that take an answer of 4 MiB: one at 128 KiB a second
// gets it, one that stops loses the connection, unless the handler decides itself.
func TestSlowReaders(t *testing.T) {
	for _, tt := range []struct {
		why         string
		rate        int // bytes a second
		ownDeadline bool
		elapsed     time.Duration // until the handler was done
		complete    bool
	}{
		{"a slow line", 128 << 10, false, 32 * time.Second, true},
		{"hardly anything", 1 << 10, false, 31 * time.Second, false},
		{"nothing", 0, false, 31 * time.Second, false},
		{"nothing of what a handler sends as it happens", 0, true, 5 * time.Second, false},
	} {
		t.Run(tt.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done, start := make(chan error, 1), time.Now()
				conn := dial(t, func(w http.ResponseWriter, _ *http.Request) {
					if tt.ownDeadline {
						_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(5 * time.Second))
					}
					var err error
					for range 64 {
						if _, err = w.Write(make([]byte, 64<<10)); err != nil {
							break
						}
					}
					done <- err
				})
				readerDone := make(chan struct{})
				go func() {
					defer close(readerDone)
					_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
					for tt.rate > 0 {
						if _, err := io.CopyN(io.Discard, conn, int64(tt.rate)); err != nil {
							return
						}
						time.Sleep(time.Second)
					}
				}()
				err := <-done
				_ = conn.Close()
				<-readerDone
				if elapsed := time.Since(start).Round(time.Second); (err == nil) != tt.complete || elapsed-tt.elapsed > time.Second || tt.elapsed-elapsed > time.Second {
					t.Errorf("the handler was done after %v, with %v", elapsed, err)
				}
			})
		})
	}
}
